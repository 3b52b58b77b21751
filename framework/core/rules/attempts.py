"""Live and dead attempts: each attempt holds a lock that the system releases when its process ends, however it ends. Where a warm JVM
writes for it, that JVM's lock counts as well: it can still write when the process is gone."""

from __future__ import annotations

import fcntl
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.home import home, private

_writer = ""
_NAME = re.compile(r"[0-9a-f]{32}")  # any other name is no attempt, and never part of a path
OLDEST = 24 * 3600  # seconds; no batch of another machine runs longer than this


def _folder() -> Path:
    return private("attempts")


def written_by(lock: str) -> None:
    """Sets the file that is locked by the JVM that writes for this process; an empty path for a JVM that ends with it."""
    global _writer
    _writer = lock


@contextmanager
def attempt() -> Iterator[str]:
    """A new attempt's id, which begins with the time; alive until the block or the process ends."""
    name = f"{int(time.time() * 1000):012x}{uuid.uuid4().hex[:20]}"
    path = _folder() / name
    for old_file in _folder().iterdir():
        if is_name(old_file.name) and _age(old_file.name) > OLDEST and is_dead(old_file.name):
            forget(old_file.name)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(_writer)
        file.flush()
        yield name
    # An attempt with branches left stays recorded: its file stays, unlocked, so the next run treats the branches as a dead attempt's.


def works_on(name: str, uuid: str) -> None:
    """Records the table of an attempt."""
    with (_folder() / name).open("a") as file:
        file.write(f"\n{uuid}")


def of(uuid: str) -> list[str]:
    """The attempts of this machine, living and dead, that work on the table with this uuid."""
    return [name for name in _recorded() if uuid in _read(name).split("\n")[1:]]


def _read(name: str) -> str:
    try:
        return (home() / "attempts" / name).read_text(errors="replace")
    except OSError:  # forgotten meanwhile, or another user's
        return ""


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_dead(name: str) -> bool:
    """Whether an attempt can no longer publish. Attempts of another machine are judged by their age alone."""
    assert is_name(name), name
    path = _folder() / name
    try:
        file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:  # none, or one that only another user can open
        return _age(name) > OLDEST
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock = os.read(file, 4096).decode(errors="replace").partition("\n")[0]
        return not works(lock, _age(name) <= OLDEST)
    except BlockingIOError:
        return False
    finally:
        os.close(file)


def works(lock: str, unknown: bool) -> bool:
    """Whether a JVM still works for the process that had this lock's lease; `unknown` where another user's file cannot be opened.
    Java locks as `lockf` does, not as `flock`."""
    try:
        file = os.open(lock, os.O_RDWR | os.O_NONBLOCK)
    except (FileNotFoundError, ValueError):  # none, or no name of a file
        return False
    except OSError:
        return unknown
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def alive() -> list[str]:
    """The attempts of this machine that can still publish."""
    return [name for name in _recorded() if not is_dead(name)]


def _recorded() -> list[str]:
    folder = home() / "attempts"
    names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if is_name(name)]


def forget(name: str) -> None:
    """Removes the record of an attempt that has left nothing."""
    assert is_name(name), name
    (_folder() / name).unlink(missing_ok=True)


def began(name: str) -> float:
    """The start of an attempt, in seconds since 1970."""
    return int(name[:12], 16) / 1000


def _age(name: str) -> float:
    return time.time() - began(name)
