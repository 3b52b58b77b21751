"""Scratch folders of Spark, one for each JVM: they hold rows that were shuffled or cached, and are deleted once the JVM is dead.

*Guarantee* A folder is deleted only while neither a JVM nor the process that starts one holds it. The system tells this by a
lock, however these processes end.
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

_STARTER, _JVM = "starter", "jvm"  # the files that the process that starts a JVM, and the JVM itself, lock
_OLDER_VERSIONS = ("blockmgr-*", "spark-*", "artifacts-*", "warehouse")  # folders of older versions, which all JVMs shared
_YOUNG = 60.0  # seconds; a JVM whose starter was killed may not hold its folder yet
_OLD = 3600.0  # seconds, after which no process uses a folder of an older version
_OFTEN = 0.05  # seconds
_NAME = uuid.uuid4().hex[:12]
_starter_files: dict[Path, TextIO] = {}  # locked files in the folders of JVMs that this process started


def folder() -> Path:
    """The folder of all scratch folders. A temporary `.sluice`, which links to the warm JVM's folder, uses the project's."""
    return (home() / "warm").resolve().parent / "spark"


def settings(place: Path) -> dict[str, str]:
    """Spark's settings for a JVM with this folder."""
    return {"spark.local.dir": str(place), "spark.sql.warehouse.dir": str(place / "warehouse")}


def own_folder() -> Path:
    """The path of the scratch folder of this process's own JVM; it is not created here."""
    return folder() / f"jvm-{os.getpid()}-{_NAME}"


def make(place: Path) -> Path:
    """Creates a scratch folder and holds it until the JVM does; deletes the folders of dead JVMs."""
    sweep()
    if place not in _starter_files or not place.exists():
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        file = (place / _STARTER).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        _starter_files[place] = file
    return place


def new_folder() -> Path:
    """The path of a scratch folder for a JVM that outlives this process."""
    return folder() / f"jvm-{uuid.uuid4().hex[:12]}"


def lock_of_jvm(place: Path) -> str:
    """The file that the JVM locks for as long as it lives."""
    return str(place / _JVM)


def sweep(also_young: bool = False) -> int:
    """Deletes the folders of dead JVMs; returns how many there were."""
    if not folder().is_dir():
        return 0
    current_time = time.time()
    dead = [
        place for place in folder().glob("jvm-*") if (also_young or _age(place, current_time) > _YOUNG) and not _is_held(place)
    ]
    leftovers = [path for pattern in _OLDER_VERSIONS for path in folder().glob(pattern) if _age(path, current_time) > _OLD]
    for path in (*dead, *leftovers):
        shutil.rmtree(path, ignore_errors=True)
    return len(dead)


def held_folders() -> Iterator[Path]:
    """Yields the scratch folders of living JVMs."""
    yield from (place for place in sorted(folder().glob("jvm-*")) if _is_held(place))


def end_own(patience: float) -> None:
    """Deletes the folders of this process's JVMs that were told to end, once they have ended, and the folders of other dead JVMs.
    A JVM of this process that was not told to end keeps its folder."""
    from pyspark import SparkContext

    deadline = time.monotonic() + patience
    for place in list(_starter_files):
        if place == own_folder() and SparkContext._gateway is not None:
            continue
        while attempts.works(lock_of_jvm(place), True) and time.monotonic() < deadline:
            time.sleep(_OFTEN)
        _starter_files.pop(place).close()
    sweep(also_young=True)


def _age(path: Path, current_time: float) -> float:
    try:
        return current_time - path.stat().st_mtime
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
