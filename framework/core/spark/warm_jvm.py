"""Finds, starts, asks and ends the process of the warm JVM.

*Guarantee* A pid counts only together with the time at which its process began. One command at a time may start or end the JVM.
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

from framework.base.home import home, put, read, turn as turn_of, usable
from framework.base.patience import CONNECTING, KILLED, STARTING
from framework.core.rules import attempts
from framework.machine import processes
from framework.machine.processes import began

IDLE = 15 * 60  # seconds
_ADDRESS, _JVM, _LOG, _TURN = "address", "jvm", "log", "turn"  # files
_OFTEN = 0.02  # seconds
_LONGEST = 10_000  # bytes of an answer
_started: subprocess.Popen[bytes] | None = None  # stays referenced: Python warns of a process that is dropped while it runs
_is_starting = False


@dataclass(frozen=True)
class Jvm:
    pid: int
    began: str
    name: str  # which the JVM writes into its address file
    key: str  # a digest of the settings that it was started with


@dataclass(frozen=True)
class Lease:
    """The right to use the JVM, as long as the connection is open."""

    connection: socket.socket
    port: int  # of this command's own gateway
    token: str
    lock: str  # the file that the JVM locks until all work of the command is over


def folder() -> Path:
    """The folder of the warm JVM's files; a temporary `.sluice` links to the project's."""
    return (home() / "warm").resolve()


@contextmanager
def turn(wait: bool = False) -> Iterator[bool]:
    """Takes the turn to start or end the JVM, and yields whether it got it; with `wait`, it waits for another command."""
    place = folder()
    with usable():
        for path in (place.parent, place):
            path.mkdir(mode=0o700, exist_ok=True)
    with turn_of(place / _TURN, STARTING if wait else 0.0) as is_ours:
        yield is_ours


def living_jvm() -> Jvm | None:
    """The JVM that the file names, if it is alive."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        jvm = Jvm(**json.loads(read(folder() / _JVM)))
        if isinstance(jvm.pid, int) and jvm.pid > 0 and began(jvm.pid) == jvm.began:
            return jvm
    return None


def launch(command: list[str], settings: Mapping[str, str], key: str, hidden_names: Collection[str]) -> bool:
    """Starts the JVM, which outlives this command, without the environment variables `hidden_names`. Waits until commands can
    attach; returns whether they can."""
    global _started, _is_starting
    place, name = folder(), uuid.uuid4().hex
    for old_file in (place / _ADDRESS, *(path for path in place.glob("lease-*") if not attempts.works(str(path), True))):
        old_file.unlink(missing_ok=True)
    options = [word for setting, value in settings.items() for word in ("--conf", f"{setting}={value}")]
    arguments = [*command, *options, "--class", "sluice.Warm", "spark-internal", str(place), str(IDLE), name]
    environment = {name: value for name, value in os.environ.items() if name not in hidden_names} | {"SPARK_CONNECT_MODE": "0"}
    try:
        _is_starting = True
        if _started is not None:
            _started.poll()
        with (place / _LOG).open("wb") as log:
            process = _started = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        start_time = began(process.pid)
        if start_time is None:
            return False
        try:
            put(place / _JVM, json.dumps({"pid": process.pid, "began": start_time, "name": name, "key": key}))
        except OSError:
            process.kill()  # no command would ever find it
            raise
        return _answers(process, name)
    finally:
        _is_starting = False


def _answers(process: subprocess.Popen[bytes], name: str) -> bool:
    deadline = time.monotonic() + STARTING
    while process.poll() is None and time.monotonic() < deadline:
        if _address(name):
            return True
        time.sleep(_OFTEN)
    return False


def kill_started() -> None:
    """Kills a JVM that is being started, for a Ctrl-C."""
    if _is_starting and _started is not None:
        _started.kill()


def lease() -> Lease | None:
    """Asks the JVM for a lease; None if it is busy or does not answer. Waits briefly while a dead command's work is cancelled."""
    deadline = time.monotonic() + CONNECTING
    while (answer := _ask("lease")) == ["ending"] and time.monotonic() < deadline:
        time.sleep(_OFTEN)
    return answer if isinstance(answer, Lease) else None


def end_if_free(jvm: Jvm) -> bool:
    """Ends the JVM unless a command uses it; returns whether it ended."""
    return _ask("end") == ["ended"] and processes.ends(jvm.pid, jvm.began, KILLED)


def end(also_busy: bool = True) -> tuple[int, bool] | None:
    """Ends the JVM, with `also_busy` even while a command uses it. Returns its pid and whether it ended; None without a JVM."""
    if not folder().exists():
        return None
    with turn(wait=True) as is_ours:
        jvm = living_jvm()
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
    """Deletes the log of a JVM that has ended: it may quote rows."""
    if living_jvm() is None:
        (folder() / _LOG).unlink(missing_ok=True)


def _address(name: str) -> tuple[int, str] | None:
    """The port and secret of the JVM of this name; None if a JVM of another name, which nobody uses any more, wrote the file."""
    with suppress(OSError, ValueError):
        port, secret, owner = read(folder() / _ADDRESS).split()
        return (int(port), secret) if owner == name else None
    return None


def _ask(request: str) -> Lease | list[str]:
    """The JVM's answer: a lease, or one word in a list; an empty list if it does not answer."""
    jvm = living_jvm()
    address = _address(jvm.name) if jvm else None
    if address is None:
        return []
    port, secret = address
    connection = socket.socket()
    connection.settimeout(CONNECTING)
    answer: list[str] = []
    with suppress(OSError, ValueError, OverflowError):
        connection.connect(("127.0.0.1", port))
        connection.sendall(f"{secret} {request}\n".encode())
        answer = _line(connection).split(maxsplit=2)
        if len(answer) == 3:
            lease = Lease(connection, int(answer[0]), answer[1], answer[2].strip())
            connection.settimeout(None)
            return lease
    connection.close()
    return answer if len(answer) == 1 else []


def _line(connection: socket.socket) -> str:
    """The line that the JVM sends; empty if it sends none in time."""
    deadline, line = time.monotonic() + CONNECTING, b""
    while not line.endswith(b"\n") and len(line) < _LONGEST and time.monotonic() < deadline:
        received = connection.recv(_LONGEST)
        if not received:
            break
        line += received
    return line.decode() if line.endswith(b"\n") else ""
