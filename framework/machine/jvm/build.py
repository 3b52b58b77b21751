"""Compiles the Java sources into one jar: by javac where there is a JDK, else by ECJ, which jars.lock names.

*Guarantee*: the jar's name has the hash of its sources and of the Java release, so that a jar that is there is never out of date. Equal
class files make an equal jar: its entries are sorted and have no times. It reaches its folder by a rename.
*Cost*: three seconds of a processor, when the sources changed. Running a pipeline compiles nothing.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.patience import STUCK
from framework.machine.java import ivy, jars
from framework.machine.java.java import installed

SOURCES = Path(__file__).parent / "sluice"
PACKAGED = Path(__file__).parent / "built"
RELEASE = "17"
FOLDER = "sluice"  # of the jars' folder
_SET = "compiler"  # of jars.lock
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can say
_LONGEST = 2_000  # characters of a compiler's words


def jar(into: Path | None = None) -> Path:
    """The path of the jar of these sources, which may not be built yet. A wheel has it next to the sources."""
    name = f"sluice-decoders-{digest()}.jar"
    return PACKAGED / name if into is None and (PACKAGED / name).exists() else (into or jars.place() / FOLDER) / name


def built() -> Path:
    """The jar of these sources, which `sluice setup` builds."""
    if not (target := jar()).exists():
        message = "the jar of the decoders is not on this machine yet, or its sources have changed"
        raise SetupError("jars-missing", message, "`sluice setup` builds it")
    return target


def digest() -> str:
    """The hash of all sources and of the Java release that they are compiled for."""
    whole = hashlib.sha256(RELEASE.encode())
    for source in _sources():
        whole.update(f"\0{source.name}\0".encode() + source.read_bytes())
    return whole.hexdigest()[:16]


def build(into: Path | None = None) -> Path:
    """Builds the jar if it is missing, and removes the jars of other sources. Returns its path."""
    target = jar(into)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with jars.turn(target.parent, "building-*"):
        if not target.exists():
            with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as drafts:
                classes = Path(drafts, "classes")
                classes.mkdir()
                _compile(classes)
                draft = Path(drafts, "draft.jar")
                _pack(classes, draft)
                draft.replace(target)
            for old in target.parent.glob("sluice-decoders-*.jar"):
                if old != target:
                    old.unlink()
    return target


def compiler() -> list[str]:
    """The command of a Java compiler, without its arguments."""
    javac = installed().home / "bin" / "javac"
    if os.access(javac, os.X_OK):
        return [str(javac), "--release", RELEASE, "-proc:none", "-nowarn"]
    return [*ecj(), f"-{RELEASE}", "-proc:none", "-nowarn"]


def ecj() -> list[str]:
    """The command of ECJ, for a Java that has no compiler of its own."""
    place = jars.fetch(_SET)
    (name,) = (file.name for file in jars.files(_SET))
    return [str(installed().binary), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-jar", str(place / name)]


def _compile(classes: Path, command: list[str] | None = None) -> None:
    class_path = os.pathsep.join([*map(str, ivy.of_pyspark()), jars.class_path("spark")])  # ECJ knows no `*`
    arguments = ["-encoding", "UTF-8", "-cp", class_path, "-d", str(classes), *map(str, _sources())]
    done = subprocess.run(
        [*(command or compiler()), *arguments], capture_output=True, text=True, errors="replace", timeout=STUCK, check=False
    )
    if done.returncode != 0 or not any(classes.rglob("*.class")):
        words = (done.stdout + done.stderr).strip()[:_LONGEST]
        raise SetupError(
            "jar-build", f"the decoders do not compile: {words}", "report this with the version of Java: `java -version`"
        )


def _sources() -> list[Path]:
    return sorted(SOURCES.glob("*.java"))


def _pack(classes: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\n\n")
        for file in sorted(classes.rglob("*.class")):
            entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


if __name__ == "__main__":  # for a wheel
    print(build(PACKAGED))
