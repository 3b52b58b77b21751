"""Where Sluice keeps its state on this machine: `.sluice/`, or the folder that SLUICE_HOME names.

It holds rows, secrets, logs with values and Dagster's history, so it is created for its owner alone. An existing folder keeps its
mode.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from framework.base.errors import SetupError

_MAX_BYTES = 64 << 20  # bytes of a file of the state
_AGAIN = 0.1  # seconds between two tries to lock a file

_DAGSTER = """\
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  # One run has the warm Spark, another starts its own.
  runs: {max_concurrent_runs: 2}
  # Each table is a pool: one run writes it at a time, whoever started it.
  pools: {default_limit: 1, granularity: op}
# A run that ended without giving its pool back, as one that was killed, loses it after a minute.
run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60}
# One sensor does not wait for the others.
sensors: {use_threads: true, num_workers: 4}
schedules: {use_threads: true, num_workers: 4}
"""
# The texts of former versions: a file that nobody has changed is replaced.
SHIPPED = (
    """\
telemetry: {enabled: false}
nux: {enabled: false}
# Each run starts a Spark of its own.
concurrency: {runs: {max_concurrent_runs: 2}}
""",
    _DAGSTER.replace("One run has the warm Spark, another starts its own.", "Each run starts a Spark of its own."),
)


def environment_of(name: str | None) -> str:
    """The environment of the specs: `name`, else that of SLUICE_ENV, else `local`."""
    return name or os.environ.get("SLUICE_ENV") or "local"


def home() -> Path:
    return Path(os.environ.get("SLUICE_HOME") or ".sluice").absolute()


def private(*parts: str) -> Path:
    """A folder below `.sluice`, created if it is missing."""
    home().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = home().joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def names(folder: Path) -> list[str]:
    """The names of the state's files in a folder, those of an environment with its name in front."""
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.json"))


def read(path: Path) -> str:
    """The text of a file of the state. Raises an OSError or a ValueError for anything else, so that no command waits for a pipe or reads
    something huge."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise ValueError(f"{path} is not a file that Sluice wrote")
        with open(descriptor, encoding="utf-8", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


@contextmanager
def usable() -> Iterator[None]:
    """Raises a SetupError where a file of the state cannot be opened, or its folder cannot be created."""
    try:
        yield
    except OSError as error:
        message = f"{error.filename} cannot be opened: {error.strerror}"
        raise SetupError("state-unusable", message, "delete it, or correct its permissions; no row depends on it") from None


def lock_file(path: Path) -> TextIO:
    """A file of the state that is locked, created if it is missing. No command waits for a pipe in its place."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666), "w", encoding="utf-8")


@contextmanager
def turn(path: Path, patience: float = 0.0) -> Iterator[bool]:
    """Waits up to `patience` seconds for the turn that a file stands for. Yields whether this process has it, as the only one of this
    machine; everybody has it where files cannot be locked."""
    with usable():
        lock = lock_file(path)
    with lock:
        deadline = time.monotonic() + patience
        while not (is_ours := _is_locked(lock)) and time.monotonic() < deadline:
            time.sleep(_AGAIN)
        yield is_ours


def _is_locked(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def put(path: Path, text: str) -> None:
    """Writes a file of the state, whole or not at all."""
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def dagster_home() -> Path:
    """Dagster's own folder, with its telemetry off, two runs at a time and one for each table."""
    folder = private("dagster")
    settings = folder / "dagster.yaml"
    if not settings.exists() or (settings.is_file() and settings.read_text(encoding="utf-8") in SHIPPED):
        settings.write_text(_DAGSTER, encoding="utf-8")
    return folder
