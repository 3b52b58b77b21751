"""A server on this machine: started in its own session, ready when it answers, stopped by its own pid.

*Guarantee* Only a process that was started here is ever stopped: a pid counts only together with its process's start
time. A start that fails, or is interrupted, leaves nothing running.
"""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import lock_file, read, usable
from framework.base.patience import ENDING, STARTING, STUCK
from framework.machine.processes import began, end
from framework.machine.services.ports import free_port, refuse_busy

# Runs in the child before the server takes its place. A shell's background job passes ignored signals on, and then
# SIGTERM would not stop a JVM. Linux can end it with the process that started it, if that is killed (prctl 1: signal at its death).
_LAUNCH = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
if sys.argv[1] != "0" and sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, int(sys.argv[1]))
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service, as its module defines it."""

    name: str
    ports: Callable[[], tuple[int, ...]]  # the first is the one that users connect to
    prepare: Callable[[Path, tuple[int, ...]], tuple[str, ...]]  # writes what it needs into its folder, and returns the command
    answers: Callable[[int], bool]
    variable: str = ""  # of the environment, by which users choose the first port
    move: str  # how to choose other ports, for the hint when one is busy
    patience: float = STARTING
    # Downloads what `make setup` does not, and prints it. A service with this starts only when it is named.
    get: Callable[[Callable[[str], object]], object] | None = None
    page: Callable[[tuple[int, ...]], str] | None = None  # the address of a page for a browser, by the ports


@dataclass(frozen=True)
class Process:
    """A running server, read from its pid file."""

    pid: int
    began: str
    ports: tuple[int, ...]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """A scope in which no other process starts or stops the service of this folder."""
    with usable():
        folder.mkdir(parents=True, exist_ok=True)
        file = lock_file(folder / "lock")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def running(folder: Path) -> Process | None:
    """The server that was started from this folder, if it still runs."""
    try:
        entry = json.loads(read(folder / "pid"))
        process = Process(int(entry["pid"]), str(entry["began"]), tuple(map(int, entry["ports"])))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # none, or cut short when the disk was full
        return None
    return process if began(process.pid) == process.began else None


@contextmanager
def private_service(service: Service, home: Path, port: int | None) -> Iterator[Process]:
    """A private service under `home`, on `port` and the next one, or on two free ports; always stopped."""
    place = home / "services" / service.name
    first_port = free_port(2) if port is None else port
    with turn(place):
        started = start(service, place, (first_port, first_port + 1), tied=True)
    try:
        yield started
    finally:
        stop(place)


def launched(command: Iterable[str], at_death: signal.Signals | None) -> list[str]:
    """The command with no signal ignored. On Linux it gets the signal `at_death` when the thread that started it dies."""
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, str(int(at_death or 0)), *command]


def start(service: Service, folder: Path, ports: tuple[int, ...], *, tied: bool = False) -> Process:
    """Start the service and wait until it answers. If `tied`, on Linux it ends when the thread that started it does."""
    for port in ports:
        refuse_busy(port, service.name, service.move)
    folder.mkdir(parents=True, exist_ok=True)
    command = service.prepare(folder, ports)
    launch = launched(command, signal.SIGKILL if tied else None)
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen(
            launch, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        process = Process(child.pid, began(child.pid) or "gone", ports)
        draft = folder / "pid.draft"
        draft.write_text(json.dumps({"pid": process.pid, "began": process.began, "ports": ports}), encoding="utf-8")
        draft.replace(folder / "pid")
        _wait(service, child, folder, ports[0])
    except BaseException:  # Ctrl-C too
        child.kill()
        child.wait()
        (folder / "pid").unlink(missing_ok=True)
        raise
    child.returncode = 0  # it outlives this object: without this Python warns about a process that still runs
    return process


def stop(folder: Path, patience: float = ENDING) -> Process | None:
    """Stop the server of this folder: SIGTERM, wait, then SIGKILL. Returns the stopped server; None if none ran."""
    process = running(folder)
    if process is not None and not end(process.pid, process.began, patience):
        raise SetupError("service-stuck", f"process {process.pid} does not end, not even killed", "see what the disk is doing")
    with suppress(OSError):  # it says nothing any more
        (folder / "pid").unlink()
    return process


def _wait(service: Service, child: subprocess.Popen[bytes], folder: Path, port: int) -> None:
    """Wait until the service answers. Raises with the end of its log if it ends or takes too long."""
    deadline = time.monotonic() + service.patience
    while child.poll() is None:
        if service.answers(port):
            return
        if time.monotonic() > deadline:
            raise failed(f"{service.name} did not answer on port {port} within {service.patience:.0f} seconds", folder / "log")
        time.sleep(0.1)
    how = f"signal {-child.returncode}" if child.returncode < 0 else f"exit status {child.returncode}"
    raise failed(f"{service.name} ended while it started, with {how}", folder / "log")


def prepare(purpose: str, hint: str, folder: Path, *command: str) -> None:
    """Runs a program that makes what a service needs. Raises with the end of its output if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=STUCK,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SetupError("service-failed", f"{purpose} took longer than ten minutes", "try again") from None
    if done.returncode != 0:
        raise SetupError("service-failed", f"{purpose} failed:{last_lines(done.stdout)}", hint)


def failed(message: str, log: Path, code: str = "service-failed", lines: int = 12) -> SetupError:
    """An error with the last lines of a log."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return SetupError(code, f"{message}; the end of its log:{last_lines(text, lines)}", f"read {log}")


def last_lines(text: str, lines: int = 12) -> str:
    """The end of a program's output, as a part of a message."""
    return "".join(f"\n  | {line}" for line in text.splitlines()[-lines:]) or " nothing"
