"""The jars of Spark and the services: copied from the user's cache or downloaded by pyspark's Ivy, and checked against jars.lock.

An archive, such as the registry's, is downloaded and checked in the same way. A set with a * is downloaded when it is first used.

*Guarantee* A jar is renamed into its folder after its SHA-256 was checked. Two downloads at once take turns, and a killed
one leaves nothing that the next does not remove. Running a pipeline never downloads anything.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import quoteattr

from framework import jar_cache
from framework.errors import NotInstalled, SetupError
from framework.home import home, private
from framework.jar_cache import digest
from framework.java import java

Arrived = Callable[[int, int], None]  # how many bytes have come, of how many
LOCK = Path(__file__).with_name("jars.lock")
MORE = ("aws",)  # sets that `sluice setup NAME` downloads; the others with a * come with the service of their name
_SETTINGS = "SLUICE_IVY_SETTINGS"
_LINE = re.compile(r"(\w+)(\*?) ([^:\s]+):([^:\s]+):([^:\s]+)(?::([\w-]+)@([\w.]+))? ([0-9a-f]{64}) (\d+)")
_PATIENCE = 30  # seconds without a word or a byte
_TRIES = 2
_INTERVAL = 0.3  # seconds between two looks
_MIRROR = f"check the network, or set {_SETTINGS} to the Ivy settings file of your company's mirror; then try again"


@dataclass(frozen=True, kw_only=True)
class Jar:
    """One line of jars.lock."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = field(default="", repr=False)  # not in the repr, which the stamp hashes: older stamps stay valid
    ext: str = field(default="jar", repr=False)
    size: int = field(repr=False)  # bytes

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}{self.classifier and f'-{self.classifier}'}.{self.ext}"


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
    its = place() / name
    if not _ready(its, jars):
        raise SetupError(
            "jars-missing",
            f"the {name} jars are not on this machine yet, or jars.lock has changed",
            f"`sluice {_downloaded_by(name, lock)}` downloads them",
        )
    return its


def are_here(name: str) -> bool:
    """Whether a set is on this machine, checked."""
    return _ready(place() / name, _jars(name, LOCK))


def _downloaded_by(name: str, lock: Path) -> str:
    if name in sets(lock):
        return "setup"
    return f"setup {name}" if name in MORE else f"services up {name}"


def class_path(name: str, lock: Path = LOCK) -> str:
    """The locked jars of a set: another jar in the folder is never loaded."""
    return os.pathsep.join(map(str, files(name, lock)))


def files(name: str, lock: Path = LOCK) -> tuple[Path, ...]:
    """The locked files of a set."""
    its = folder(name, lock)
    return tuple(its / jar.file for jar in _jars(name, lock))


def bad_jars(name: str, lock: Path = LOCK) -> tuple[str, ...]:
    """The jars of a set that are missing or differ from jars.lock; reads every byte."""
    its = place() / name
    return tuple(jar.file for jar in _jars(name, lock) if digest(its / jar.file) != jar.sha256)


def fetch(name: str, lock: Path = LOCK, arrived: Arrived = lambda *_: None) -> Path:
    """Download the jars of a set that are missing; takes no time if none are. `arrived` is called now and then."""
    jars = _jars(name, lock)
    root = link()
    its = root / name
    if _ready(its, jars):
        return its
    with turn(root, "fetching-*") as taken:
        if not _ready(its, jars):
            its.mkdir(parents=True, exist_ok=True)
            (its / "stamp").unlink(missing_ok=True)
            missing = tuple(jar for jar in jars if digest(its / jar.file) != jar.sha256)
            if missing:
                _download(name, missing, its, taken, arrived)
            _stamp(its, jars)
    return its


def place() -> Path:
    """The folder of all sets: that of the user where this `.sluice` has none of its own."""
    own, shared = home() / "jars", _shared()
    return (own if own.exists() or shared is None or not shared.exists() else shared).resolve()


def link() -> Path:
    """The same, made and linked to, so that it is found below `.sluice`."""
    own, shared = home() / "jars", _shared()
    if not own.exists() and shared is not None and jar_cache.writable(shared):
        private()
        own.unlink(missing_ok=True)  # a link to a cache that was deleted
        with suppress(FileExistsError):  # another process has just made it
            own.symlink_to(shared)
    own.resolve().mkdir(parents=True, exist_ok=True)
    return own.resolve()


def _shared() -> Path | None:
    """Of all folders that run the same program: two programs do not remove each other's jars."""
    inside = of_pyspark()
    return jar_cache.shared(f"{digest(LOCK)} {inside[0].parent}") if inside else None


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
    digest = hashlib.sha256("\n".join(map(repr, jars)).encode()).hexdigest()
    return "\n".join([digest, *(f"{(place / jar.file).stat().st_size} {jar.file}" for jar in jars)]) + "\n"


def _stamp(place: Path, jars: tuple[Jar, ...]) -> None:
    wanted = {jar.file for jar in jars}
    for old in (*place.glob("*.jar"), *place.glob("*.tar.gz")):
        if old.name not in wanted:
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
        for left in root.glob(drafts):  # left by a killed process: nobody else holds the lock
            shutil.rmtree(left, ignore_errors=True)
        yield handle.fileno()


def _download(name: str, jars: tuple[Jar, ...], place: Path, turn: int, arrived: Arrived) -> None:
    staging = Path(tempfile.mkdtemp(prefix="fetching-", dir=place.parent))
    try:
        absent = tuple(jar for jar in jars if not jar_cache.take(jar.sha256, staging / jar.file))
        _fetch(name, absent, staging, turn, arrived)
        for jar in absent:
            actual = digest(staging / jar.file)
            if actual is None:
                raise SetupError("jar-missing", f"{jar.file} was not downloaded: {_coordinates(jar)} has no such file", _MIRROR)
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


def _fetch(name: str, jars: tuple[Jar, ...], staging: Path, turn: int, arrived: Arrived) -> None:
    """What did not come is asked for once more: a mirror may have to get a file itself first, and a connection may break."""
    failure: SetupError | None = None
    for _ in range(_TRIES):
        jars = tuple(jar for jar in jars if not (staging / jar.file).exists())
        failure = _ivy(name, jars, staging, turn, arrived) if jars else None
    if failure:
        raise failure


def _ivy(name: str, jars: tuple[Jar, ...], staging: Path, turn: int, arrived: Arrived) -> SetupError | None:
    """Downloads them; the error with which Ivy ended. Raises one if no answer comes at all."""
    shutil.rmtree(staging / "cache", ignore_errors=True)
    command = [
        str(java()),
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        str(_ivy_jar()),
        "org.apache.ivy.Main",
        "-verbose",
        *_settings(),
    ]
    # A cache of its own: otherwise a bad jar would come back from the user's Ivy cache for ever.
    command += ["-cache", str(staging / "cache"), "-ivy", str(_module(jars, staging)), "-types", "jar"]
    command += ["-retrieve", str(staging / "[artifact]-[revision](-[classifier]).[ext]")]
    log, total = staging.parent / f"{name}.log", sum(jar.size for jar in jars)
    with open(log, "wb") as out:
        ivy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, pass_fds=(turn,))
        try:
            silent = _silent(ivy, log, lambda: arrived(_downloaded(staging), total))
        finally:
            ivy.kill()
            ivy.wait()
    if silent:
        raise SetupError(
            "jars-network", f"the {name} jars cannot be downloaded: no answer for {_PATIENCE} seconds ({log})", _MIRROR
        )
    if ivy.returncode != 0:
        return _failure(name, jars, log)
    arrived(_downloaded(staging), total)  # also where it took no time
    log.unlink()
    return None


def _silent(ivy: subprocess.Popen[bytes], log: Path, progress: Callable[[], None]) -> bool:
    """Wait for Ivy's end; True if it wrote nothing for too long: behind a firewall that drops packets it waits for ever."""
    log_size, since = -1, time.monotonic()
    while time.monotonic() - since < _PATIENCE:
        with suppress(subprocess.TimeoutExpired):
            ivy.wait(_INTERVAL)
            return False
        progress()
        before, log_size = log_size, log.stat().st_size
        if log_size != before:
            since = time.monotonic()
    return True


def _downloaded(staging: Path) -> int:
    """The bytes that Ivy has."""
    total = 0
    for file in staging.glob("cache/*/*/jars/*"):
        with suppress(FileNotFoundError):  # it has another name once it is whole
            total += file.stat().st_size
    return total


def _settings() -> list[str]:
    named = os.environ.get(_SETTINGS)
    if not named:
        return []
    if not Path(named).is_file():
        raise SetupError("ivy-settings", f"{_SETTINGS} names {named}, which is not a file", f"correct it, or unset {_SETTINGS}")
    return ["-settings", str(Path(named).absolute())]


def of_pyspark() -> list[Path]:
    """The jars inside the package pyspark."""
    spec = importlib.util.find_spec("pyspark")  # not imported: the import takes most of a second
    places = spec.submodule_search_locations if spec else None
    return [jar for place in places or () for jar in sorted(Path(place, "jars").glob("*.jar"))]


def _ivy_jar() -> Path:
    for jar in of_pyspark():
        if jar.name.startswith("ivy-"):
            return jar
    raise NotInstalled("pyspark")  # whose Ivy downloads the jars


def _module(jars: tuple[Jar, ...], staging: Path) -> Path:
    """Ivy's list of files to download: exactly these jars, whatever their poms depend on or call their packaging."""
    lines = ['<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="sluice" module="jars"/>']
    lines.append("<dependencies>")
    for module, same in groupby(jars, lambda jar: (jar.group, jar.artifact, jar.version)):  # a module may have several jars
        group, artifact, version = map(quoteattr, module)
        lines.append(f'<dependency org={group} name={artifact} rev={version} transitive="false">')
        for jar in same:
            classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
            lines.append(f'<artifact name={artifact} type="jar" ext={quoteattr(jar.ext)}{classifier}/>')
        lines.append("</dependency>")
    file = staging / "ivy.xml"
    file.write_text("\n".join([*lines, "</dependencies></ivy-module>"]), encoding="utf-8")
    return file


def _failure(name: str, jars: tuple[Jar, ...], log: Path) -> SetupError:
    output = log.read_text(encoding="utf-8", errors="replace")
    unreached = re.search(
        r"Host \S+ not found|Server access error|Connection (?:refused|reset|timed out)|Network is unreachable"
        r"|No route to host|connect timed out|Read timed out|PKIX path|SSLHandshake|Received fatal alert",
        output,
        re.IGNORECASE,
    )
    if unreached:
        return SetupError("jars-network", f"the {name} jars cannot be downloaded: {unreached[0].lower()} ({log})", _MIRROR)
    absent = [
        _coordinates(jar) for jar in jars if re.search(rf":: {re.escape(f'{jar.group}#{jar.artifact};{jar.version}')}\b", output)
    ]
    if absent:
        return SetupError("jar-missing", f"the Maven repository does not have {', '.join(absent)} ({log})", _MIRROR)
    last_line = next((line.strip() for line in reversed(output.splitlines()) if line.strip(" \t:")), "nothing")
    return SetupError("jars-failed", f"Ivy did not download the {name} jars; its last line: {last_line} ({log})", _MIRROR)


def _coordinates(jar: Jar) -> str:
    return f"{jar.group}:{jar.artifact}:{jar.version}{jar.classifier and f':{jar.classifier}@{jar.ext}'}"
