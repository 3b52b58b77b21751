"""Processes of this machine: identified by pid and start time, found by their ports, and ended with their groups.

Read from /proc; without it, from `ps` and `lsof`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from framework.base.patience import ENDING, KILLED


def began(pid: int) -> str | None:
    """A process's start time, exact enough that a reused pid differs; None if it has ended or is a zombie."""
    if Path("/proc/self/stat").exists():
        try:
            state, *_, ticks = _stat(Path(f"/proc/{pid}"))[:20]
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            # A JVM's first thread can be a zombie while the others still hold memory and ports.
            ended = state in "ZX" and len(list(Path(f"/proc/{pid}/task").iterdir())) <= 1
        except OSError:
            return None
        return None if ended else f"{boot} {ticks}"
    state, _, since = _ps(pid, "stat=", "lstart=").partition(" ")
    return None if not state or state.startswith("Z") else since.strip()


def memory(pid: int) -> int | None:
    """The bytes of memory that a process holds; None if unknown."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(resident[1]) * 1024 if resident else None
    kilobytes = _ps(pid, "rss=")
    return int(kilobytes) * 1024 if kilobytes.isdigit() else None


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
    lists = Path("/proc/self/task").glob("*/children")
    return {
        int(pid)
        for file in lists
        for pid in file.read_text(encoding="ascii").split()
        if f"{variable}=".encode() in _environment(pid)
    }


def _environment(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended
        return b""


def listener(port: int) -> str:
    """The process that listens on a port, as `process 123 (java)`; empty if unknown."""
    pid = _by_proc(port) if Path("/proc/net/tcp").exists() else _by_lsof(port)
    if pid is None:
        return ""
    with suppress(OSError):
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    return f"process {pid}"


def _group_ends(child: subprocess.Popen[bytes], number: int, seconds: float) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        child.poll()
        if not _group_lives(child.pid):
            return True
        time.sleep(0.05)
    return False


def _group_lives(group: int) -> bool:
    """Whether a process of the group runs; zombies do not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    processes = list(Path("/proc").glob("[0-9]*"))
    for process in processes:
        with suppress(OSError):  # ended in the meantime
            state, _, its_group = _stat(process)[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return not processes


def _stat(process: Path) -> list[str]:
    """The fields of /proc/PID/stat after the process's name, which is in brackets and may hold anything: state, parent, group and, 20th,
    the ticks from boot to its start."""
    return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _ps(pid: int, *columns: str) -> str:
    command = ["ps", *(part for column in columns for part in ("-o", column)), "-p", str(pid)]
    return subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout.strip()


def _by_proc(port: int) -> int | None:
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                field = line.split()
                if field[3] == "0A" and int(field[1].rpartition(":")[2], 16) == port:  # 0A: it listens
                    sockets.add(f"socket:[{field[9]}]")
    return next((int(folder.name) for folder in Path("/proc").glob("[0-9]*") if not sockets.isdisjoint(_open(folder))), None)


def _open(process: Path) -> Iterator[str]:
    """The files and sockets of a process; empty for other users' processes."""
    with suppress(OSError):
        for file in (process / "fd").iterdir():
            with suppress(OSError):  # closed in the meantime
                yield os.readlink(file)


def _by_lsof(port: int) -> int | None:
    if shutil.which("lsof") is None:
        return None
    command = ["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-t"]
    pids = subprocess.run(command, check=False, capture_output=True, text=True).stdout.split()
    return int(pids[0]) if pids else None
