"""Processes of this machine: identified by pid and start time, found by their ports, and ended with their groups.

Only `began` reads /proc, or asks `ps` where there is none: psutil has no start that stays when the clock is set. psutil is imported inside
functions, because its import takes 20 ms.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from framework.base.patience import ENDING, KILLED


def began(pid: int) -> str | None:
    """A process's start time, exact enough that a reused pid differs; None if it has ended or is a zombie."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            state, *_, ticks = stat.rpartition(")")[2].split()[:20]  # after the name in brackets, which may hold anything
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            # A JVM's first thread can be a zombie while the others still hold memory and ports.
            ended = state in "ZX" and len(list(Path(f"/proc/{pid}/task").iterdir())) <= 1
        except OSError:
            return None
        return None if ended else f"{boot} {ticks}"
    command, english = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)], {**os.environ, "LC_ALL": "C"}
    line = subprocess.run(command, check=False, capture_output=True, text=True, env=english).stdout.strip()
    state, _, since = line.partition(" ")
    return None if not state or state.startswith("Z") else since.strip()


def memory(pid: int) -> int | None:
    """The bytes of memory that a process holds; None if unknown."""
    import psutil

    with suppress(psutil.Error):
        return psutil.Process(pid).memory_info().rss
    return None


def end(pid: int, since: str, patience: float = ENDING) -> bool:
    """Ends a process that began at `since`: SIGTERM, wait, SIGKILL. Returns whether it ended."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, KILLED)):
        with suppress(ProcessLookupError):
            try:
                os.kill(pid, number)
            except PermissionError:  # it is another user's
                return False
        if ends(pid, since, seconds):
            return True
    return False


def ends(pid: int, since: str, seconds: float) -> bool:
    """Waits for the end of a process that began at `since`. Returns whether it ended in time."""
    deadline = time.monotonic() + seconds
    while began(pid) == since:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    with suppress(ChildProcessError):  # it was our own child: leave no zombie
        os.waitpid(pid, 0)
    return True


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group, and all others of the group, which may outlive it: SIGTERM, wait, SIGKILL. A second Ctrl-C
    skips the wait."""
    for number, seconds in ((signal.SIGTERM, ENDING), (signal.SIGKILL, KILLED)):
        with suppress(KeyboardInterrupt):
            if _group_ends(child, number, seconds):
                return


def children(variable: str) -> set[int]:
    """The children of this process that have this environment variable."""
    import psutil

    pids = set()
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has ended
            if variable in child.environ():
                pids.add(child.pid)
    return pids


def listener(port: int) -> str:
    """The process that listens on a port, as `process 123 (java)`; empty if unknown."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or is another user's
            sockets = process.net_connections("tcp")
            if any(socket.status == psutil.CONN_LISTEN and socket.laddr.port == port for socket in sockets):
                name = process.name().encode(errors="replace").decode()  # which may be no text
                return f"process {process.pid} ({name})"
    return ""


def _group_ends(child: subprocess.Popen[bytes], number: int, seconds: float) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        child.poll()
        if not _group_lives(child.pid):
            return True
        time.sleep(0.05)
    return False


def _group_lives(group: int) -> bool:
    """Whether a process of the group runs; zombies do not count."""
    import psutil

    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):  # ended in the meantime
            if os.getpgid(pid) == group and psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return True
    return False
