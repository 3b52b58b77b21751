"""Services as real processes: a tiny one for failures, and the real Kafka for what must work."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.base.errors import SetupError
from framework.host.cli import _addresses, main
from framework.machine import services
from framework.machine.processes import listener, memory
from framework.machine.services import kafka, process
from framework.machine.services.ports import free_port, is_free
from tests.support.tiny_service import LISTEN, tiny
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "tiny"
    process.stop(tmp_path / "tiny", patience=0)


def alive(pid: int) -> bool:
    """Returns whether a process of this id exists, even as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_service_answers_and_leaves_no_process_when_stopped(place: Path) -> None:
    port = free_port()
    started = process.start(tiny(), place, (port,))
    assert process.running(place) == started and started.address == f"127.0.0.1:{port}"
    assert os.getsid(started.pid) == started.pid  # its own session: Ctrl-C in a terminal does not reach it
    assert (memory(started.pid) or 0) > 1 << 20
    assert process.stop(place) == started
    assert not alive(started.pid) and is_free(port) and process.running(place) is None
    assert process.stop(place) is None


def test_ignored_signals_are_not_passed_on(place: Path) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        process.start(tiny(), place, (free_port(),))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (place / "log").read_text().startswith("signals True <built-in function default_int_handler>")


def test_a_service_that_ignores_sigterm_is_killed(place: Path) -> None:
    started = process.start(tiny(LISTEN, "stubborn"), place, (free_port(),))
    process.stop(place, patience=0.2)
    assert not alive(started.pid)


def test_a_service_that_dies_at_start_shows_the_end_of_its_log(place: Path) -> None:
    with pytest.raises(SetupError) as error:
        process.start(tiny("print('no such setting: colour'); raise SystemExit(3)"), place, (free_port(),))
    assert error.value.code == "service-failed"
    assert "exit status 3" in error.value.message and "| no such setting: colour" in error.value.message
    assert not (place / "pid").exists()


def test_a_service_that_never_answers_is_not_left_running(place: Path) -> None:
    silent = tiny("import os, signal; print(os.getpid(), flush=True); signal.pause()", patience=3.0)
    with pytest.raises(SetupError, match="did not answer"):
        process.start(silent, place, (free_port(),))
    assert not alive(int((place / "log").read_text())) and not (place / "pid").exists()


def test_a_busy_port_is_named_with_its_holder(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(SetupError) as error:
            process.start(tiny(), place, (free_port(), port))
    assert error.value.code == "port-busy" and error.value.hint == "choose another"
    assert f"port {port}, but process {os.getpid()} (" in error.value.message


def test_the_holder_of_a_port_is_found_while_it_opens_and_closes_files() -> None:
    ended = threading.Event()

    def busy() -> None:
        while not ended.is_set():
            files = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
            for file in files:
                os.close(file)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            holders = {listener(server.getsockname()[1]) for _ in range(20)}
    finally:
        ended.set()
        thread.join()
    assert len(holders) == 1 and holders.pop().startswith(f"process {os.getpid()} (")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process choose its name")
def test_a_name_that_is_no_text_is_printed_all_the_same() -> None:
    code = (
        "import ctypes, socket; ctypes.CDLL(None).prctl(15, b'caf\\xe9', 0, 0, 0)\n"
        "server = socket.create_server(('127.0.0.1', 0)); print(server.getsockname()[1], flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert listener(int(server.stdout.readline())) == f"process {server.pid} (caf?)"
        server.kill()


@pytest.mark.parametrize("began", ["another boot 123", "gone"])
def test_a_reused_pid_is_never_stopped(place: Path, began: str) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        place.mkdir()
        (place / "pid").write_text(json.dumps({"pid": bystander.pid, "began": began, "ports": [1]}))
        assert process.running(place) is None and process.stop(place) is None
        assert bystander.poll() is None and not (place / "pid").exists()
        bystander.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process together with its parent")
def test_a_tied_service_ends_with_a_killed_test(place: Path) -> None:
    code = (
        "import signal, sys; from pathlib import Path; import tests.machine.test_services as t\n"
        "print(t.process.start(t.tiny(), Path(sys.argv[1]), (t.free_port(),), tied=True), flush=True); signal.pause()"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE, cwd=root, text=True) as owner:
        assert owner.stdout is not None
        started = process.running(place) if owner.stdout.readline() else None
        assert started is not None
        owner.kill()
    until(lambda: not process.running(place), "it outlives its owner", 30)


@pytest.mark.parametrize("text", ["", "{", '{"pid": "x"}', "[]"])
def test_a_broken_pid_file_counts_as_stopped(tmp_path: Path, text: str) -> None:
    (tmp_path / "services" / "kafka").mkdir(parents=True)
    (tmp_path / "services" / "kafka" / "pid").write_text(text)
    result = CliRunner().invoke(main, ["services", "status"], env={"SLUICE_HOME": str(tmp_path)})
    assert (result.output, result.exit_code) == (
        "aws: stopped\ncatalog: stopped\nkafka: stopped\nmail: stopped\nprometheus: stopped\nregistry: stopped\ns3: stopped\n",
        0,
    )


def test_names_and_ports_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="no service named rabbit"):
        services.up(["rabbit"])
    assert CliRunner().invoke(main, ["services", "up", "rabbit"]).exit_code == 2
    monkeypatch.setenv("SLUICE_KAFKA_PORT", "24000")
    assert kafka.ports() == (24000, 24001)
    for wrong in ("65535", "0", "-1", "kafka"):
        monkeypatch.setenv("SLUICE_KAFKA_PORT", wrong)
        with pytest.raises(SetupError, match="not a port"):
            kafka.ports()


@pytest.fixture
def kafka_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a home for the test, with this machine's jars."""
    from framework.machine.java import jars

    (tmp_path / "jars").symlink_to(jars.fetch("kafka").parent)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_KAFKA_PORT", str(free_port(2)))
    return tmp_path


@pytest.mark.kafka
@pytest.mark.long
def test_topics_survive_starting_and_stopping_kafka_twice(kafka_home: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    try:
        (first_state,) = services.up(["kafka"])
        assert first_state.changed and first_state.state == "running" and first_state.address
        (second_state,) = services.up()
        assert not second_state.changed and second_state.pid == first_state.pid
        admin = AdminClient({"bootstrap.servers": first_state.address})
        admin.create_topics([NewTopic("kept", 2)])["kept"].result(10)
        del admin
        assert services.status(["kafka"])[0].memory
        assert services.down(["kafka"])[0].changed and not services.down(["kafka"])[0].changed
        assert first_state.pid is not None and not alive(first_state.pid)
        (third,) = services.up()
        assert "kept" in AdminClient({"bootstrap.servers": str(third.address)}).list_topics(timeout=5).topics
    finally:
        services.down()
    assert services.status(["kafka"])[0].state == "stopped"


@pytest.mark.kafka
@pytest.mark.long
def test_a_tests_own_kafka_is_stopped_when_the_test_fails(kafka_home: Path, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), kafka.running(tmp_path / "own") as bootstrap:
        started = process.running(tmp_path / "own" / "services" / "kafka")
        assert started is not None and started.address == bootstrap
        _ = 1 / 0
    assert started is not None and not alive(started.pid)


SPEC_OF_ADDRESSES = """
cluster: main
bootstrap: {bootstrap}
registry: http://localhost:28081/apis/ccompat/v7
---
catalog: lake
type: rest
uri: http://127.0.0.1:28182/api/catalog
storage: {{endpoint: "http://127.0.0.1:29100", region: us-east-1, access_key: a, secret_key: "${{secret:b}}"}}
"""


@pytest.fixture
def without_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in services.services().values():
        monkeypatch.delenv(service.variable, raising=False)


def specs_naming(folder: Path, bootstrap: str) -> Path:
    (folder / "specs").mkdir()
    (folder / "specs" / "main.yaml").write_text(SPEC_OF_ADDRESSES.format(bootstrap=bootstrap))
    return folder / "specs"


@pytest.mark.usefixtures("without_ports")
def test_each_service_has_the_port_that_the_specs_name_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = specs_naming(tmp_path, "127.0.0.1:29092")
    ports = {name: service.ports()[0] for name, service in services.services().items()}
    with _addresses.used(_addresses.named(specs, "local")):
        assert {name: service.ports()[0] for name, service in services.services().items()} == {
            "kafka": 29092, "registry": 28081, "catalog": 28182, "s3": 29100,
            **{name: ports[name] for name in ("aws", "mail", "prometheus")},
        }  # fmt: skip
    assert {name: service.ports()[0] for name, service in services.services().items()} == ports
    monkeypatch.setenv("SLUICE_KAFKA_PORT", "24000")
    with _addresses.used(_addresses.named(specs, "local")):
        assert kafka.ports() == (24000, 24001)
    assert _addresses.named(tmp_path / "nowhere", "local") == ()


@pytest.mark.kafka
def test_kafka_starts_where_the_specs_of_the_environment_say(kafka_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kafka_home)
    monkeypatch.delenv("SLUICE_KAFKA_PORT")
    port, elsewhere = free_port(2), free_port(2)
    specs = specs_naming(kafka_home, f"localhost:{port},127.0.0.1:{port}")
    prod = specs / "environments" / "prod"
    prod.mkdir(parents=True)
    (prod / "main.yaml").write_text("cluster: main\nbootstrap: kafka.example.com:9092\n")
    runner = CliRunner()
    try:
        started = runner.invoke(main, ["services", "up", "kafka"])
        assert started.exit_code == 0, started.output
        assert started.output.startswith(f"kafka: started, 127.0.0.1:{port}, process ")
        assert len(started.output.splitlines()) == 1
        output = runner.invoke(main, ["services", "up", "kafka", "--env", "prod"]).output
        assert f"kafka: already running, 127.0.0.1:{port}, process " in output
        assert "kafka: the cluster `main` names kafka.example.com:9092, which is another machine" in output
        (specs / "main.yaml").write_text(SPEC_OF_ADDRESSES.format(bootstrap=f"127.0.0.1:{elsewhere}"))
        moved = runner.invoke(main, ["services", "up"]).output
        assert (
            f"the cluster `main` names 127.0.0.1:{elsewhere}, and it runs at another port: `sluice services down kafka`" in moved
        )
        services.down(["kafka"])
        assert f"kafka: started, 127.0.0.1:{elsewhere}, process " in runner.invoke(main, ["services", "up"]).output
        services.down(["kafka"])
        monkeypatch.setenv("SLUICE_KAFKA_PORT", str(port))
        default_output = runner.invoke(main, ["services", "up"]).output
        assert f"names 127.0.0.1:{elsewhere}, and SLUICE_KAFKA_PORT chose this port" in default_output
    finally:
        services.down()
    unknown = runner.invoke(main, ["services", "up", "--env", "nowhere"])
    assert unknown.exit_code == 1 and "unknown-environment" in unknown.output
