"""Ports of 127.0.0.1: which are free, and who holds one that is not."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from framework.errors import SetupError


def is_free(port: int) -> bool:
    """Can a server listen on this port?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(count: int = 1) -> int:
    """The first of `count` neighbouring free ports, below those that the system gives to outgoing connections."""
    for first in random.sample(range(20000, 32000), 200):
        if all(is_free(first + step) for step in range(count)):
            return first
    raise SetupError("port-busy", "no free port found between 20000 and 32000", "see what listens there, and stop it")


def pair(variable: str, default: int) -> tuple[int, int]:
    """The port that the environment names, or the default, and the next one."""
    said = os.environ.get(variable) or str(default)
    if not said.isdecimal() or not 0 < int(said) < 65535:
        raise SetupError("port-number", f"{variable} is {said!r}, which is not a port", "set it to a number from 1024 to 65534")
    return int(said), int(said) + 1


def refuse_busy(port: int, what: str, hint: str) -> None:
    """Raises where another process listens on the port that something needs."""
    if not is_free(port):
        raise SetupError("port-busy", f"{what} needs port {port}, but {holder(port) or 'another process'} holds it", hint)


def holder(port: int) -> str:
    """Who listens on a port, as `process 123 (java)`; empty if it cannot be told."""
    pid = _by_proc(port) if Path("/proc/net/tcp").exists() else _by_lsof(port)
    if pid is None:
        return ""
    with suppress(OSError):
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    return f"process {pid}"


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
    said = subprocess.run(command, check=False, capture_output=True, text=True).stdout.split()
    return int(said[0]) if said else None
