"""Files of `.sluice` that are damaged or of somebody else: no command waits for them, and none fails with a traceback."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from framework.base.errors import SetupError
from framework.base.patience import CONNECTING
from framework.core.rules import attempts, journal
from framework.core.spark import warm_jvm
from framework.features.export import records
from framework.host import clean, ui
from framework.host.cli import main
from framework.machine import processes
from framework.machine.processes import began
from framework.machine.services import process
from framework.operations.forget.expiring import _noted

ATTEMPT = f"0190a0b1c2d3{20 * 'a'}"
NAME = "the-name-of-the-jvm"
WITHOUT_CATALOGS: Any = SimpleNamespace(catalogs=())


def huge(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, 3 << 30)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "a list": lambda path: path.write_text('["a", 1, null]'),
    "a number": lambda path: path.write_text("5"),
    "other fields": lambda path: path.write_text('{"paused": 5, "failed": [1], "followers": 3, "pid": "1/../self", "ports": 3}'),
    "other types": lambda path: path.write_text('{"paused": null, "failed": null, "followers": {"a": 5}, "pid": -1, "name": 1, "key": 2}'),
    "deep": lambda path: path.write_text(200_000 * "["),
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "a link to itself": lambda path: path.symlink_to(path),
    "huge": huge,
}  # fmt: skip
READERS: dict[str, Callable[[], object]] = {
    "pipelines/trades.json": lambda: journal.read("trades") == journal.RunRecord(),
    "exports/daily.json": lambda: records.by_window("daily") == {},
    "forget/note.json": lambda: "note" not in str(_noted(Path(os.environ["SLUICE_HOME"], "forget", "note.json"))),
    "services/kafka/pid": lambda: process.running(Path(os.environ["SLUICE_HOME"], "services", "kafka")) is None,
    "warm/jvm": lambda: warm_jvm.living_jvm() is None,
    "warm/address": lambda: warm_jvm._address(NAME) is None,
    "ui.lock": lambda: ui.running() is None,
    "dagster/dagster.yaml": lambda: all("dagster" not in str(path) for path in clean._existing(WITHOUT_CATALOGS, (), False)),
    "attempts": lambda: attempts.alive() == [],
    f"attempts/{ATTEMPT}": lambda: attempts.is_dead(ATTEMPT) in (True, False),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", READERS)
def test_a_damaged_file_counts_as_none_at_once(home: Path, file: str, damage: str) -> None:
    (home / file).parent.mkdir(parents=True)
    DAMAGES[damage](home / file)
    start_time = time.monotonic()
    assert READERS[file]()
    assert time.monotonic() - start_time < 2


@pytest.mark.parametrize("file", ["warm/turn", "warm", "services/kafka/lock", "services/kafka/pid", "services"])
@pytest.mark.parametrize("damage", ["a folder", "empty"])
def test_services_down_says_what_it_cannot_open(home: Path, file: str, damage: str) -> None:
    (home / file).parent.mkdir(parents=True)
    DAMAGES[damage](home / file)
    result = CliRunner().invoke(main, ["services", "down"])
    if result.exit_code:
        assert isinstance(result.exception, SystemExit)
        assert f"{home / file}" in result.output
        assert "state-unusable" in result.output


def test_a_pipe_in_the_place_of_a_lock_stops_nobody(home: Path) -> None:
    (home / "warm").mkdir(parents=True)
    os.mkfifo(home / "warm" / "turn")
    assert CliRunner().invoke(main, ["services", "down"]).exit_code == 0


def test_a_command_that_stopped_while_it_started_the_jvm_holds_up_nobody_for_ever(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_jvm, "STARTING", 0.1)  # it waits for a minute
    described(home, 1)
    with (home / "warm" / "turn").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert warm_jvm.end() == (os.getpid(), False)
    assert warm_jvm.living_jvm() is not None


def described(home: Path, port: int) -> None:
    """Describe this very process as the warm JVM, which answers at the port."""
    (home / "warm").mkdir(parents=True)
    jvm = {"pid": os.getpid(), "began": began(os.getpid()), "name": NAME, "key": "a key"}
    (home / "warm" / "jvm").write_text(json.dumps(jvm))
    (home / "warm" / "address").write_text(f"{port}\nthe-secret\n{NAME}\n")


@contextmanager
def answering(*answers: bytes, pause: float = 0.0) -> Iterator[int]:
    """The port of a program that answers whatever it is asked with these bytes, and then says nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        open_connections, over = [], threading.Event()

        def answer() -> None:
            connection, _ = server.accept()
            open_connections.append(connection)
            with suppress(OSError):  # nobody waits for it any more
                for piece in answers:
                    connection.sendall(piece)
                    over.wait(pause)

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]
        over.set()
        for connection in open_connections:
            connection.close()


@pytest.mark.parametrize(
    "answers",
    [
        (), (b"HTTP/1.1 400 Bad Request\r\n\r\n",), (b"a b c\n",), (b"\xff\xfe\n",), (b"\n",), (b"99999999999 token\n",), 200 * (b"x",),
        (100_000 * b"x",),
    ],
    ids=["nothing", "HTTP", "three words", "no text", "an empty line", "two words", "byte by byte", "no line"],
)  # fmt: skip
def test_a_stranger_at_the_address_is_no_jvm(home: Path, answers: tuple[bytes, ...]) -> None:
    start_time = time.monotonic()
    with answering(*answers, pause=0.05) as port:
        described(home, port)
        assert warm_jvm.lease() is None
    with answering(*answers, pause=0.05) as port:
        (home / "warm" / "address").write_text(f"{port} the-secret {NAME}")
        jvm = warm_jvm.living_jvm()
        assert jvm is not None and not warm_jvm.end_if_free(jvm)
    assert time.monotonic() - start_time < 2 * CONNECTING + 2


def test_a_web_server_at_the_address_is_no_jvm(home: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    described(home, server.server_port)
    assert warm_jvm.lease() is None
    server.shutdown()


def test_an_address_of_another_jvm_is_asked_nothing(home: Path) -> None:
    """Only a process that was started with the name in the address gets the secret."""
    with answering(b"1 token lock\n") as port:
        described(home, port)
        (home / "warm" / "address").write_text(f"{port} the-secret another-name")
        assert warm_jvm.lease() is None
        (home / "warm" / "address").write_text(f"{port} the-secret {NAME}")
        lease = warm_jvm.lease()
        assert lease is not None and lease.lock == "lock"
        lease.connection.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_left_alone() -> None:
    own_pid, start_time = os.getpid(), began(os.getpid())
    assert start_time is not None
    child = os.fork()
    if not child:
        code = 2
        with suppress(BaseException):
            os.setuid(65534)
            code = int(processes.end(own_pid, start_time))
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_jvm_that_cannot_be_recorded_does_not_stay(home: Path) -> None:
    """Otherwise each command would leave a JVM behind."""
    (home / "warm" / "jvm").mkdir(parents=True)
    with pytest.raises(OSError, match="jvm"):
        warm_jvm.launch(["sh", "-c", "exec sleep 60"], {}, "a key", ())
    assert warm_jvm._started is not None and warm_jvm._started.wait(5) < 0


def test_a_lock_that_cannot_be_opened_is_said(home: Path) -> None:
    (home / "warm" / "turn").mkdir(parents=True)
    with pytest.raises(SetupError, match="state-unusable"), warm_jvm.turn():
        pass
    assert processes.began(os.getpid())
