"""Scratch folders of Spark, one for each JVM: they hold rows that were shuffled or kept, and go once the JVM is dead.

*Guarantee* A folder is deleted only while neither a JVM nor the process that starts one holds it, which the system tells however they end.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from framework.base.home import home
from framework.core.rules import attempts

_STARTER, _JVM = "starter", "jvm"  # files that a process that starts a JVM locks, and the JVM
_OLDER_VERSIONS = ("blockmgr-*", "spark-*", "artifacts-*", "warehouse")  # which had one folder for all JVMs
_YOUNG = 60.0  # seconds; a JVM whose starter was killed may not hold its folder yet
_OLD = 3600.0  # seconds, after which what an older version left is nobody's
_OFTEN = 0.05  # seconds
_NAME = uuid.uuid4().hex[:12]
_held: dict[Path, TextIO] = {}  # the folders of JVMs that this process started


def folder() -> Path:
    """The folder of all of them; also of a temporary `.sluice`, from which the warm JVM's is linked."""
    return (home() / "warm").resolve().parent / "spark"


def settings(place: Path) -> dict[str, str]:
    """Spark's settings for a JVM with this folder."""
    return {"spark.local.dir": str(place), "spark.sql.warehouse.dir": str(place / "warehouse")}


def own() -> Path:
    """The folder of the JVM that this process has for itself, named but not made."""
    return folder() / f"jvm-{os.getpid()}-{_NAME}"


def make(place: Path) -> Path:
    """Make a folder and hold it until the JVM does; folders of dead JVMs are removed."""
    sweep()
    if place not in _held or not place.exists():
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        file = (place / _STARTER).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        _held[place] = file
    return place


def new() -> Path:
    """A folder for a JVM that outlives this process."""
    return folder() / f"jvm-{uuid.uuid4().hex[:12]}"


def lock_of_jvm(place: Path) -> str:
    """The file that the JVM locks for as long as it lives."""
    return str(place / _JVM)


def sweep(also_young: bool = False) -> int:
    """Delete the folders of dead JVMs; return how many there were."""
    if not folder().is_dir():
        return 0
    now = time.time()
    dead = [place for place in folder().glob("jvm-*") if (also_young or _age(place, now) > _YOUNG) and not _is_held(place)]
    left = [path for pattern in _OLDER_VERSIONS for path in folder().glob(pattern) if _age(path, now) > _OLD]
    for path in (*dead, *left):
        shutil.rmtree(path, ignore_errors=True)
    return len(dead)


def held() -> Iterator[Path]:
    """The folders of JVMs that live."""
    yield from (place for place in sorted(folder().glob("jvm-*")) if _is_held(place))


def end_own(patience: float) -> None:
    """Delete the folders of this process's JVMs, which were told to end, once they have, and those of other dead ones. A JVM of this
    process that was not told stays."""
    from pyspark import SparkContext

    until = time.monotonic() + patience
    for place in list(_held):
        if place == own() and SparkContext._gateway is not None:
            continue
        while attempts.works(lock_of_jvm(place), True) and time.monotonic() < until:
            time.sleep(_OFTEN)
        _held.pop(place).close()
    sweep(also_young=True)


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_held(place: Path) -> bool:
    try:
        with (place / _STARTER).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return attempts.works(lock_of_jvm(place), True)
