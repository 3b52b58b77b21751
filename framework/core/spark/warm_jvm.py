"""The process of the warm JVM: found, started, asked and ended.

*Guarantee* A pid counts only together with the time at which its process began. Who may start or end the JVM is one command at a time.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from framework.base.home import home, put, read, usable
from framework.base.patience import CONNECTING, KILLED, STARTING
from framework.core.rules import attempts
from framework.machine import processes
from framework.machine.processes import began

IDLE = 15 * 60  # seconds
_ADDRESS, _JVM, _LOG, _TURN = "address", "jvm", "log", "turn"  # files
_OFTEN = 0.02  # seconds
_LONGEST = 10_000  # bytes of an answer
_started: subprocess.Popen[bytes] | None = None  # kept, for Python warns of one that is forgotten while it runs
_is_starting = False


@dataclass(frozen=True)
class Jvm:
    pid: int
    began: str
    name: str  # by which it answers
    key: str  # what it was started with


@dataclass(frozen=True)
class Lease:
    """The right to use the JVM, as long as the connection is open."""

    connection: socket.socket
    port: int  # of a gateway of its own
    token: str
    lock: str  # the file that the JVM locks until all that was begun is over


def folder() -> Path:
    """Also of a temporary `.sluice`, which has a link to it."""
    return (home() / "warm").resolve()


@contextmanager
def turn(wait: bool = False) -> Iterator[bool]:
    """Whether this command is the one that may start or end the JVM now; with `wait` it waits for another that starts it."""
    place = folder()
    with usable():
        for path in (place.parent, place):
            path.mkdir(mode=0o700, exist_ok=True)
    with attempts.turn(place / _TURN, STARTING if wait else 0.0) as is_ours:
        yield is_ours


def there() -> Jvm | None:
    """The JVM that is alive."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        jvm = Jvm(**json.loads(read(folder() / _JVM)))
        if isinstance(jvm.pid, int) and jvm.pid > 0 and began(jvm.pid) == jvm.began:
            return jvm
    return None


def launch(command: list[str], settings: Mapping[str, str], key: str, without: Collection[str]) -> bool:
    """Starts the JVM, which stays when this command ends, without these environment variables; waits until commands can attach.
    Whether they can."""
    global _started, _is_starting
    place, name = folder(), uuid.uuid4().hex
    for old in (place / _ADDRESS, *(each for each in place.glob("lease-*") if not attempts.works(str(each), True))):
        old.unlink(missing_ok=True)
    options = [word for setting, value in settings.items() for word in ("--conf", f"{setting}={value}")]
    whole = [*command, *options, "--class", "sluice.Warm", "spark-internal", str(place), str(IDLE), name]
    environment = {name: value for name, value in os.environ.items() if name not in without} | {"SPARK_CONNECT_MODE": "0"}
    try:
        _is_starting = True
        if _started is not None:
            _started.poll()
        with (place / _LOG).open("wb") as log:
            process = _started = subprocess.Popen(
                whole, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        since = began(process.pid)
        if since is None:
            return False
        try:
            put(place / _JVM, json.dumps({"pid": process.pid, "began": since, "name": name, "key": key}))
        except OSError:
            process.kill()  # no command would find it
            raise
        return _answers(process, name)
    finally:
        _is_starting = False


def _answers(process: subprocess.Popen[bytes], name: str) -> bool:
    until = time.monotonic() + STARTING
    while process.poll() is None and time.monotonic() < until:
        if _address(name):
            return True
        time.sleep(_OFTEN)
    return False


def kill_started() -> None:
    """Kills a JVM that is being started, for a Ctrl-C."""
    if _is_starting and _started is not None:
        _started.kill()


def lease() -> Lease | None:
    """None where the JVM is busy or does not answer. What a command that is gone began is over in a moment."""
    until = time.monotonic() + CONNECTING
    while (answer := _ask("lease")) == ["ending"] and time.monotonic() < until:
        time.sleep(_OFTEN)
    return answer if isinstance(answer, Lease) else None


def end_if_free(jvm: Jvm) -> bool:
    """Ends the JVM, but not while a command has it; whether it ended."""
    return _ask("end") == ["ended"] and processes.ends(jvm.pid, jvm.began, KILLED)


def end(also_busy: bool = True) -> tuple[int, bool] | None:
    """Ends the JVM, `also_busy` while a command has it. Its process, and whether it ended; None where there was none."""
    if not folder().exists():
        return None
    with turn(wait=True) as is_ours:
        jvm = there()
        if jvm is None:
            return None
        if not is_ours:
            return jvm.pid, False
        if not also_busy and _ask("end") == ["busy"]:
            return jvm.pid, False
        ended = processes.end(jvm.pid, jvm.began)
        (folder() / _ADDRESS).unlink(missing_ok=True)
        return jvm.pid, ended


def forget_log() -> None:
    """Delete what a JVM that has ended wrote: it may quote rows."""
    if there() is None:
        (folder() / _LOG).unlink(missing_ok=True)


def _address(name: str) -> tuple[int, str] | None:
    """The port and secret of the JVM of this name. One that nobody knows any more can have written the file."""
    with suppress(OSError, ValueError):
        port, secret, its = read(folder() / _ADDRESS).split()
        return (int(port), secret) if its == name else None
    return None


def _ask(what: str) -> Lease | list[str]:
    """The JVM's answer: a lease, or a word; nothing where it does not answer."""
    jvm = there()
    address = _address(jvm.name) if jvm else None
    if address is None:
        return []
    port, secret = address
    connection = socket.socket()
    connection.settimeout(CONNECTING)
    answer: list[str] = []
    with suppress(OSError, ValueError, OverflowError):
        connection.connect(("127.0.0.1", port))
        connection.sendall(f"{secret} {what}\n".encode())
        answer = _line(connection).split(maxsplit=2)
        if len(answer) == 3:
            lease = Lease(connection, int(answer[0]), answer[1], answer[2].strip())
            connection.settimeout(None)
            return lease
    connection.close()
    return answer if len(answer) == 1 else []


def _line(connection: socket.socket) -> str:
    """The line that comes; nothing where it is none, or does not come in time."""
    until, line = time.monotonic() + CONNECTING, b""
    while not line.endswith(b"\n") and len(line) < _LONGEST and time.monotonic() < until:
        received = connection.recv(_LONGEST)
        if not received:
            break
        line += received
    return line.decode() if line.endswith(b"\n") else ""
