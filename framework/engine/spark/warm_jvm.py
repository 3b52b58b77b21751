"""The process of the warm JVM: found, started, asked and ended.

*Guarantee* A pid counts only together with the time at which its process began. Who may start or end the JVM is one command at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from framework import processes
from framework.home import home, put
from framework.patience import CONNECTING, KILLED, STARTING
from framework.processes import began

IDLE = 15 * 60  # seconds
_ADDRESS, _JVM, _LOG, _TURN = "address", "jvm", "log", "turn"  # files
_OFTEN = 0.02  # seconds
_started: subprocess.Popen[bytes] | None = None


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
    """Whether this command is the one that may start or end the JVM now; with `wait` it will be."""
    place = folder()
    for each in (place.parent, place):
        each.mkdir(mode=0o700, exist_ok=True)
    with (place / _TURN).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def there() -> Jvm | None:
    """The JVM that is alive."""
    with suppress(OSError, ValueError, TypeError):
        jvm = Jvm(**json.loads((folder() / _JVM).read_text(encoding="utf-8")))
        if began(jvm.pid) == jvm.began:
            return jvm
    return None


def launch(command: list[str], settings: Mapping[str, str], key: str) -> bool:
    """Starts the JVM, which stays when this command ends, and waits until commands can attach; whether they can."""
    global _started
    place, name = folder(), uuid.uuid4().hex
    for old in (place / _ADDRESS, *place.glob("lease-*")):
        old.unlink(missing_ok=True)
    options = [word for setting, value in settings.items() for word in ("--conf", f"{setting}={value}")]
    whole = [*command, *options, "--class", "sluice.Warm", "spark-internal", str(place), str(IDLE), name]
    # Secrets are each command's own, and this process stays.
    own = ("SLUICE_HOME", "SLUICE_SECRET_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)} | {"SPARK_CONNECT_MODE": "0"}
    with (place / _LOG).open("wb") as log:
        process = _started = subprocess.Popen(
            whole, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    put(place / _JVM, json.dumps({"pid": process.pid, "began": began(process.pid), "name": name, "key": key}))
    until = time.monotonic() + STARTING
    while process.poll() is None and time.monotonic() < until:
        if _address(name):
            _started = None
            return True
        time.sleep(_OFTEN)
    return False


def kill_started() -> None:
    """Kills a JVM that is being started, for a Ctrl-C."""
    if _started is not None:
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


def end() -> int | None:
    """Ends the JVM, also while a command has it. Its process; None where there was none."""
    if not folder().exists():
        return None
    with turn(wait=True):
        jvm = there()
        if jvm is None:
            return None
        processes.end(jvm.pid, jvm.began)
        (folder() / _ADDRESS).unlink(missing_ok=True)
        return jvm.pid


def _address(name: str) -> tuple[int, str] | None:
    """The port and secret of the JVM of this name. One that nobody knows any more can have written the file."""
    with suppress(OSError, ValueError):
        port, secret, its = (folder() / _ADDRESS).read_text(encoding="ascii").split()
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
    with suppress(OSError, ValueError):
        connection.connect(("127.0.0.1", port))
        connection.sendall(f"{secret} {what}\n".encode())
        answer = connection.makefile("r", encoding="utf-8").readline().split(maxsplit=2)
    if len(answer) == 3:
        connection.settimeout(None)
        return Lease(connection, int(answer[0]), answer[1], answer[2].strip())
    connection.close()
    return answer
