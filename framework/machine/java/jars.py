"""The jars of Spark and the services: copied from the user's cache or downloaded by pyspark's Ivy, and checked against jars.lock.

An archive, such as the registry's, is downloaded and checked in the same way. A set with a * is downloaded when it is first used.

*Guarantee* A jar is renamed into its folder after its SHA-256 was checked. Two downloads at once take turns, and a killed
one leaves nothing that the next does not remove. Running a pipeline never downloads anything.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import home, private
from framework.machine.java import ivy, jar_cache
from framework.machine.java.ivy import Arrived, Jar
from framework.machine.java.jar_cache import digest

LOCK = Path(__file__).with_name("jars.lock")
OPTIONAL_SETS = (
    "aws",
    "registry",
)  # sets that `sluice setup NAME` downloads; the others with a * come with the service of their name
_LINE = re.compile(r"(\w+)(\*?) ([^:\s]+):([^:\s]+):([^:\s]+)(?::([\w-]+)@([\w.]+))? ([0-9a-f]{64}) (\d+)")


def sets(lock: Path = LOCK, later: bool = False) -> dict[str, tuple[Jar, ...]]:
    """The sets of jars.lock that `sluice setup` downloads, in the order of the file; with `later` also those with a *."""
    jar_sets: dict[str, tuple[Jar, ...]] = {}
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise SetupError(
                "jars-lock", f"{lock.name}:{number} is not `set group:artifact:version sha256 bytes`", "correct that line"
            )
        name, star, group, artifact, version, classifier, ext, sha256, size = match.groups()
        if later or not star:
            jar = Jar(
                group=group,
                artifact=artifact,
                version=version,
                sha256=sha256,
                classifier=classifier or "",
                ext=ext or "jar",
                size=int(size),
            )
            jar_sets[name] = (*jar_sets.get(name, ()), jar)
    return jar_sets


def folder(name: str, lock: Path = LOCK) -> Path:
    """The folder with all jars of a set, all checked."""
    jars = _jars(name, lock)
    jars_folder = place() / name
    if not _ready(jars_folder, jars):
        raise SetupError(
            "jars-missing",
            f"the {name} jars are not on this machine yet, or jars.lock has changed",
            f"`sluice {_downloaded_by(name, lock)}` downloads them",
        )
    return jars_folder


def are_here(name: str) -> bool:
    """Whether a set is on this machine, checked."""
    return _ready(place() / name, _jars(name, LOCK))


def _downloaded_by(name: str, lock: Path) -> str:
    if name in sets(lock):
        return "setup"
    return f"setup {name}" if name in OPTIONAL_SETS else f"services up {name}"


def class_path(name: str, lock: Path = LOCK) -> str:
    """The locked jars of a set: another jar in the folder is never loaded."""
    return os.pathsep.join(map(str, files(name, lock)))


def files(name: str, lock: Path = LOCK) -> tuple[Path, ...]:
    """The locked files of a set."""
    jars_folder = folder(name, lock)
    return tuple(jars_folder / jar.file for jar in _jars(name, lock))


def bad_jars(name: str, lock: Path = LOCK) -> tuple[str, ...]:
    """The jars of a set that are missing or differ from jars.lock; reads every byte."""
    jars_folder = place() / name
    return tuple(jar.file for jar in _jars(name, lock) if digest(jars_folder / jar.file) != jar.sha256)


def fetch(name: str, lock: Path = LOCK, arrived: Arrived = lambda *_: None) -> Path:
    """Download the jars of a set that are missing; takes no time if none are. `arrived` is called now and then."""
    jars = _jars(name, lock)
    root = link()
    jars_folder = root / name
    if _ready(jars_folder, jars):
        return jars_folder
    with turn(root, "fetching-*") as descriptor:
        if not _ready(jars_folder, jars):
            jars_folder.mkdir(parents=True, exist_ok=True)
            (jars_folder / "stamp").unlink(missing_ok=True)
            missing_jars = tuple(jar for jar in jars if digest(jars_folder / jar.file) != jar.sha256)
            if missing_jars:
                _download(name, missing_jars, jars_folder, descriptor, arrived)
            _stamp(jars_folder, jars)
    return jars_folder


def place() -> Path:
    """The folder of all sets: the user's shared one, unless this `.sluice` has a folder of its own."""
    own_folder, shared_folder = home() / "jars", _shared()
    return (
        own_folder if _is_own(own_folder, shared_folder) or shared_folder is None or not shared_folder.exists() else shared_folder
    ).resolve()


def link() -> Path:
    """Returns the folder of all sets, after creating it and linking to it from `.sluice`."""
    own_folder, shared_folder = home() / "jars", _shared()
    if not _is_own(own_folder, shared_folder) and shared_folder is not None and jar_cache.writable(shared_folder):
        private()
        own_folder.unlink(missing_ok=True)  # a link to a cache that was deleted, or to that of another program
        with suppress(FileExistsError):  # another process has just made it
            own_folder.symlink_to(shared_folder)
    own_folder.resolve().mkdir(parents=True, exist_ok=True)
    return own_folder.resolve()


def _is_own(own_folder: Path, shared_folder: Path | None) -> bool:
    """Whether this `.sluice` has jars for this program: it may have been used with another Sluice or another pyspark."""
    if shared_folder is None or not own_folder.is_symlink():
        return own_folder.exists()
    place, shared_place = own_folder.resolve(), shared_folder.resolve()
    return own_folder.exists() and (place == shared_place or place.parent != shared_place.parent)


def _shared() -> Path | None:
    """The folder that all folders with the same program share: two programs do not remove each other's jars."""
    pyspark_jars = ivy.of_pyspark()
    return jar_cache.shared(f"{digest(LOCK)} {pyspark_jars[0].parent}") if pyspark_jars else None


def _jars(name: str, lock: Path) -> tuple[Jar, ...]:
    jar_sets = sets(lock, later=True)
    if name not in jar_sets:
        raise SetupError("jars-set", f"jars.lock has no set named {name}", f"it has {', '.join(sorted(jar_sets))}")
    return jar_sets[name]


def _ready(place: Path, jars: tuple[Jar, ...]) -> bool:
    try:
        return (place / "stamp").read_text(encoding="utf-8") == _content(place, jars)
    except OSError:
        return False


def _content(place: Path, jars: tuple[Jar, ...]) -> str:
    """The stamp: the hash of the set's lines, then each jar's size. It differs for another lock or a truncated jar."""
    digest = hashlib.sha256("\n".join(jar.stamped for jar in jars).encode()).hexdigest()
    return "\n".join([digest, *(f"{(place / jar.file).stat().st_size} {jar.file}" for jar in jars)]) + "\n"


def _stamp(place: Path, jars: tuple[Jar, ...]) -> None:
    file_names = {jar.file for jar in jars}
    for old in (*place.glob("*.jar"), *place.glob("*.tar.gz")):
        if old.name not in file_names:
            old.unlink()
    draft = place / "stamp.draft"
    draft.write_text(_content(place, jars), encoding="utf-8")
    draft.replace(place / "stamp")


@contextmanager
def turn(root: Path, drafts: str) -> Iterator[int]:
    """A lock for writing here, through drafts of this pattern. The lock file's descriptor is passed to Ivy, so that the lock lasts as
    long as Ivy writes."""
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for draft in root.glob(drafts):  # left by a killed process: nobody else holds the lock
            shutil.rmtree(draft, ignore_errors=True)
        yield handle.fileno()


def _download(name: str, jars: tuple[Jar, ...], place: Path, turn: int, arrived: Arrived) -> None:
    staging = Path(tempfile.mkdtemp(prefix="fetching-", dir=place.parent))
    try:
        missing_jars = tuple(jar for jar in jars if not jar_cache.take(jar.sha256, staging / jar.file))
        ivy.fetch(name, missing_jars, staging, turn, arrived)
        for jar in missing_jars:
            actual = digest(staging / jar.file)
            if actual is None:
                raise SetupError("jar-missing", f"{jar.file} was not downloaded: {jar.coordinates} has no such file", ivy.MIRROR)
            if actual != jar.sha256:
                raise SetupError(
                    "jar-checksum",
                    f"{jar.file} is not the file that jars.lock names: expected SHA-256 {jar.sha256}, found {actual}",
                    "do not use it: ask who runs the mirror that it came from, or download again; the file was deleted",
                )
            jar_cache.keep(jar.sha256, staging / jar.file)
        for jar in jars:
            (staging / jar.file).replace(place / jar.file)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
