"""A server on this machine: started in its own session, ready when it answers, stopped by its own pid.

*Guarantee*: only a process that was started here is ever stopped: a pid counts together with the time at which its
process began. A start that fails, or is interrupted, leaves nothing running.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from framework.errors import SetupError
from framework.services.ports import free_port, holder, is_free

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
    """What a file of this folder offers."""

    name: str
    ports: Callable[[], tuple[int, ...]]  # the first is the one that users connect to
    prepare: Callable[[Path, tuple[int, ...]], tuple[str, ...]]  # write what it needs into its folder; the command
    answers: Callable[[int], bool]
    move: str  # how to choose other ports, for the hint when one is busy
    patience: float = 60.0  # seconds until it must answer
    # Gets what `make setup` does not, and says so. A service that has this starts only when it is named.
    get: Callable[[Callable[[str], object]], object] | None = None


@dataclass(frozen=True)
class Process:
    """A running server, as its pid file says it."""

    pid: int
    began: str
    ports: tuple[int, ...]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Starting and stopping the same service take turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def running(folder: Path) -> Process | None:
    """The server that was started from this folder, if it still runs."""
    try:
        said = json.loads((folder / "pid").read_text(encoding="utf-8"))
        process = Process(int(said["pid"]), str(said["began"]), tuple(map(int, said["ports"])))
    except (OSError, ValueError, KeyError, TypeError):  # none, or cut short when the disk was full
        return None
    return process if _began(process.pid) == process.began else None


@contextmanager
def own(service: Service, home: Path, port: int | None) -> Iterator[Process]:
    """A service of one's own under `home`, on two free ports unless told; stopped whatever happens."""
    place = home / "services" / service.name
    first = free_port(2) if port is None else port
    with turn(place):
        started = start(service, place, (first, first + 1), tied=True)
    try:
        yield started
    finally:
        stop(place)


def launched(command: Iterable[str], at_death: signal.Signals | None) -> list[str]:
    """The command with no signal ignored; on Linux it is sent this one when the thread that started it dies."""
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, str(int(at_death or 0)), *command]


def start(service: Service, folder: Path, ports: tuple[int, ...], *, tied: bool = False) -> Process:
    """Start the service and wait until it answers. Tied: on Linux it ends when the thread that started it does."""
    for port in ports:
        _require_free(service, port)
    folder.mkdir(parents=True, exist_ok=True)
    command = service.prepare(folder, ports)
    launch = launched(command, signal.SIGKILL if tied else None)
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen(
            launch, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        process = Process(child.pid, _began(child.pid) or "gone", ports)
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


def stop(folder: Path, patience: float = 20.0) -> Process | None:
    """Stop the server of this folder: ask, wait, then kill. Says which one it was, None if none ran."""
    process = running(folder)
    if process is not None:
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
            if _gone(process, seconds):
                break
        else:
            raise SetupError(
                "service-stuck", f"process {process.pid} does not end, not even killed", "see what the disk is doing"
            )
    (folder / "pid").unlink(missing_ok=True)
    return process


def memory(pid: int) -> int | None:
    """The bytes of memory that a process holds, None if it cannot be told."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else None
    said = _ps(pid, "rss=")
    return int(said) * 1024 if said.isdigit() else None


def _require_free(service: Service, port: int) -> None:
    if is_free(port):
        return
    by = holder(port) or "another process"
    raise SetupError("port-busy", f"{service.name} needs port {port}, but {by} holds it", service.move)


def _wait(service: Service, child: subprocess.Popen[bytes], folder: Path, port: int) -> None:
    """Until it answers; an error with the end of its log if it dies or takes too long."""
    deadline = time.monotonic() + service.patience
    while child.poll() is None:
        if service.answers(port):
            return
        if time.monotonic() > deadline:
            raise _failed(f"{service.name} did not answer on port {port} within {service.patience:.0f} seconds", folder)
        time.sleep(0.1)
    how = f"signal {-child.returncode}" if child.returncode < 0 else f"exit status {child.returncode}"
    raise _failed(f"{service.name} ended while it started, with {how}", folder)


def _failed(what: str, folder: Path) -> SetupError:
    log = folder / "log"
    last = "".join(f"\n  | {line}" for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
    return SetupError("service-failed", f"{what}; the end of its log:{last or ' nothing'}", f"read {log}")


def _gone(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while _began(process.pid) == process.began:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    with suppress(ChildProcessError):  # it was our own child: leave no zombie
        os.waitpid(process.pid, 0)
    return True


def _began(pid: int) -> str | None:
    """When a process began, exact enough that a reused pid differs; None if it has ended, as a zombie has."""
    if Path("/proc/self/stat").exists():
        try:
            # The name, in brackets, may hold anything; after it come the state and, 20th, the ticks since boot.
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            # A JVM's first thread can be a zombie while its others still hold memory and ports.
            ended = fields[0] in "ZX" and len(list(Path(f"/proc/{pid}/task").iterdir())) <= 1
        except OSError:
            return None
        return None if ended else f"{boot} {fields[19]}"
    state, _, began = _ps(pid, "stat=", "lstart=").partition(" ")
    return None if not state or state.startswith("Z") else began.strip()


def _ps(pid: int, *columns: str) -> str:
    command = ["ps", *(part for column in columns for part in ("-o", column)), "-p", str(pid)]
    return subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout.strip()
