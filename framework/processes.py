"""Processes of this machine: told apart from later ones of the same number, found by their ports, and ended with their groups.

Read from /proc; where there is none, `ps` and `lsof` are asked.
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

from framework.patience import ENDING, KILLED


def began(pid: int) -> str | None:
    """When a process began, exact enough that a reused pid differs; None if it has ended, as a zombie has."""
    if Path("/proc/self/stat").exists():
        try:
            state, *_, ticks = _stat(Path(f"/proc/{pid}"))[:20]
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            # A JVM's first thread can be a zombie while its others still hold memory and ports.
            ended = state in "ZX" and len(list(Path(f"/proc/{pid}/task").iterdir())) <= 1
        except OSError:
            return None
        return None if ended else f"{boot} {ticks}"
    state, _, since = _ps(pid, "stat=", "lstart=").partition(" ")
    return None if not state or state.startswith("Z") else since.strip()


def memory(pid: int) -> int | None:
    """The bytes of memory that a process holds, None if it cannot be told."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(resident[1]) * 1024 if resident else None
    kilobytes = _ps(pid, "rss=")
    return int(kilobytes) * 1024 if kilobytes.isdigit() else None


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group, and all others of it, which may outlive it: ask, wait, then kill. Another Ctrl-C does not wait."""
    for number, seconds in ((signal.SIGTERM, ENDING), (signal.SIGKILL, KILLED)):
        with suppress(KeyboardInterrupt):
            if _group_ends(child, number, seconds):
                return


def children() -> set[int]:
    """The processes that this one has started."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(child) for each in lists for child in each.read_text(encoding="ascii").split()}


def listener(port: int) -> str:
    """Who listens on a port, as `process 123 (java)`; empty if it cannot be told."""
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
    """Whether a process of the group runs; one that has ended and that nobody waits for does not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    processes = list(Path("/proc").glob("[0-9]*"))
    for each in processes:
        with suppress(OSError):  # ended in the meantime
            state, _, its_group = _stat(each)[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return not processes


def _stat(process: Path) -> list[str]:
    """What /proc says of a process behind its name, which stands in brackets and may hold anything: state, parent, group and, 20th,
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
    """The files and sockets of a process; other users' processes do not show theirs."""
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
