"""Downloads by the Ivy that pyspark has, which runs in a Java of its own.

*Guarantee* Exactly the files that are asked for come, whatever their poms depend on. An answer that does not come is an error.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import quoteattr

from framework.base.errors import NotInstalled, SetupError
from framework.base.patience import DOWNLOAD
from framework.machine.java.java import java

Arrived = Callable[[int, int], None]  # how many bytes have come, of how many
_SETTINGS = "SLUICE_IVY_SETTINGS"
_TRIES = 2
_INTERVAL = 0.3  # seconds between two looks
MIRROR = f"check the network, or set {_SETTINGS} to the Ivy settings file of your company's mirror; then try again"


@dataclass(frozen=True, kw_only=True)
class Jar:
    """One line of jars.lock."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    ext: str = "jar"
    size: int  # bytes

    @property
    def stamped(self) -> str:
        """The text of which the stamp of a folder of jars is made. It stays as it is, so that older stamps stay valid."""
        return f"Jar(group={self.group!r}, artifact={self.artifact!r}, version={self.version!r}, sha256={self.sha256!r})"

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}{self.classifier and f'-{self.classifier}'}.{self.ext}"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}{self.classifier and f':{self.classifier}@{self.ext}'}"


def fetch(name: str, jars: tuple[Jar, ...], staging: Path, turn: int, arrived: Arrived) -> None:
    """Downloads the jars, missing ones in a second try: a mirror may have to get a file itself first, and a connection may break."""
    failure: SetupError | None = None
    for _ in range(_TRIES):
        jars = tuple(jar for jar in jars if not (staging / jar.file).exists())
        failure = _ivy(name, jars, staging, turn, arrived) if jars else None
    if failure:
        raise failure


def _ivy(name: str, jars: tuple[Jar, ...], staging: Path, turn: int, arrived: Arrived) -> SetupError | None:
    """Downloads the jars. Returns the error with which Ivy ended, or None; raises one if no answer comes at all."""
    shutil.rmtree(staging / "cache", ignore_errors=True)
    command = [
        str(java()),
        *_proxies(),
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
    with open(log, "wb") as log_file:
        ivy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=subprocess.STDOUT, pass_fds=(turn,))
        try:
            silent = _silent(ivy, log, lambda: arrived(_downloaded(staging), total))
        finally:
            ivy.kill()
            ivy.wait()
    if silent:
        raise SetupError(
            "jars-network", f"the {name} jars cannot be downloaded: no answer for {DOWNLOAD:.0f} seconds ({log})", MIRROR
        )
    if ivy.returncode != 0:
        return _failure(name, jars, log)
    arrived(_downloaded(staging), total)  # also where it took no time
    log.unlink()
    return None


def _silent(ivy: subprocess.Popen[bytes], log: Path, progress: Callable[[], None]) -> bool:
    """Waits for Ivy's end. Returns True if it wrote nothing for too long: behind a firewall that drops packets it waits for ever."""
    log_size, since = -1, time.monotonic()
    while time.monotonic() - since < DOWNLOAD:
        with suppress(subprocess.TimeoutExpired):
            ivy.wait(_INTERVAL)
            return False
        progress()
        former_size, log_size = log_size, log.stat().st_size
        if log_size != former_size:
            since = time.monotonic()
    return True


def _downloaded(staging: Path) -> int:
    """The bytes that Ivy has."""
    total = 0
    for file in staging.glob("cache/*/*/jars/*"):
        with suppress(FileNotFoundError):  # it has another name once it is whole
            total += file.stat().st_size
    return total


def _proxies() -> Iterator[str]:
    """The proxies that the environment names, which Java ignores."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies  # takes longer to import than all else here

    proxies = getproxies()
    for scheme in ("http", "https"):
        proxy = urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            yield f"-D{scheme}.proxyHost={proxy.hostname}"
            yield f"-D{scheme}.proxyPort={proxy.port or 80}"
    if excluded_hosts := [
        host.strip().removeprefix("*").removeprefix(".") for host in proxies.get("no", "").split(",") if host.strip()
    ]:
        hosts = (host for name in excluded_hosts for host in (name or "*", f"*.{name}"))
        yield f"-Dhttp.nonProxyHosts={'|'.join(hosts)}"


def _settings() -> list[str]:
    file = os.environ.get(_SETTINGS)
    if not file:
        return []
    if not Path(file).is_file():
        raise SetupError("ivy-settings", f"{_SETTINGS} names {file}, which is not a file", f"correct it, or unset {_SETTINGS}")
    return ["-settings", str(Path(file).absolute())]


def of_pyspark() -> list[Path]:
    """The jars inside the package pyspark."""
    spec = importlib.util.find_spec("pyspark")  # not imported: the import takes most of a second
    places = spec.submodule_search_locations if spec else None
    return [jar for place in places or () for jar in sorted(Path(place, "jars").glob("*.jar"))]


def spark_home() -> Path:
    """The Spark of the package pyspark."""
    return of_pyspark()[0].parent.parent


def _ivy_jar() -> Path:
    for jar in of_pyspark():
        if jar.name.startswith("ivy-"):
            return jar
    raise NotInstalled("pyspark")  # whose Ivy downloads the jars


def _module(jars: tuple[Jar, ...], staging: Path) -> Path:
    """Ivy's list of files to download: exactly these jars, whatever their poms depend on or call their packaging."""
    lines = ['<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="sluice" module="jars"/>']
    lines.append("<dependencies>")
    for module, module_jars in groupby(
        jars, lambda jar: (jar.group, jar.artifact, jar.version)
    ):  # a module may have several jars
        group, artifact, version = map(quoteattr, module)
        lines.append(f'<dependency org={group} name={artifact} rev={version} transitive="false">')
        for jar in module_jars:
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
        return SetupError("jars-network", f"the {name} jars cannot be downloaded: {unreached[0].lower()} ({log})", MIRROR)
    absent = [
        jar.coordinates for jar in jars if re.search(rf":: {re.escape(f'{jar.group}#{jar.artifact};{jar.version}')}\b", output)
    ]
    if absent:
        return SetupError("jar-missing", f"the Maven repository does not have {', '.join(absent)} ({log})", MIRROR)
    last_line = next((line.strip() for line in reversed(output.splitlines()) if line.strip(" \t:")), "nothing")
    return SetupError("jars-failed", f"Ivy did not download the {name} jars; its last line: {last_line} ({log})", MIRROR)
