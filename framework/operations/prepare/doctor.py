"""Checks whether this machine is ready. Each check returns its finding and, if there is a problem, a hint. Nothing is changed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import home
from framework.machine.java import ivy, jars, java
from framework.machine.jvm import build
from framework.machine.processes import listener
from framework.machine.services import USUAL, folder, process, registry, services
from framework.machine.services.ports import is_free

GIB = 1 << 30
DISK = 3 * GIB
MEMORY = 4 * GIB
_PACKAGES = "install `sluice` again in an environment of its own; in a clone of Sluice, `make setup` does"


@dataclass(frozen=True)
class Finding:
    """The result of one check; with a hint if it is a problem."""

    subject: str
    state: str
    hint: str = ""

    @property
    def ok(self) -> bool:
        return not self.hint


def diagnose() -> tuple[Finding, ...]:
    """The findings of all checks, in a fixed order. Where Spark is not installed, checks that concern it are left out."""
    return tuple(finding for check in (CHECKS if ivy.of_pyspark() else SLIM) for finding in check())


def check_python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", version, "" if sys.version_info >= (3, 10) else "install Python 3.10 or later; make setup PYTHON=...")


def check_java() -> Iterator[Finding]:
    try:
        java_here = java.started()
    except SetupError as error:
        yield Finding("Java", error.message, error.hint)
    else:
        yield Finding("Java", f"{java_here.version}, {java_here.home}")


def check_packages() -> Iterator[Finding]:
    for name in ("sluice", "sluice-slim"):
        with suppress(metadata.PackageNotFoundError):
            yield packages(metadata.requires(name) or [])
            return
    yield Finding("packages", "Sluice itself is not installed in this Python", _PACKAGES)


def packages(requirements: Iterable[str]) -> Finding:
    """Whether each package that is pinned to one version, or to a range with an end, is installed in such a version."""
    mismatches, pinned_packages = [], []
    for line in requirements:
        requirement = re.fullmatch(r"([\w.-]+)(?:\[.*])?(==[\w.]+|[<>]=?[\w.]+,[<>]=?[\w.]+)", line.strip())
        if requirement is None:
            continue
        name, bounds = requirement.groups()
        required_version = bounds.removeprefix("==")
        try:
            installed_version = metadata.version(name)
        except metadata.PackageNotFoundError:
            mismatches.append(f"{name} is missing, {required_version} is needed")
            continue
        if not (installed_version == required_version if bounds.startswith("==") else _is_within(installed_version, bounds)):
            mismatches.append(f"{name} is {installed_version}, {required_version} is needed")
        elif bounds.startswith("=="):
            pinned_packages.append(f"{name} {installed_version}")
    if mismatches:
        return Finding("packages", "; ".join(mismatches), _PACKAGES)
    return Finding("packages", ", ".join(pinned_packages))


def _is_within(installed_version: str, bounds: str) -> bool:
    """Whether a version is within a range such as `>=1.2,<2`."""
    lower_bounds = [_numbers(bound[2:]) for bound in bounds.split(",") if bound.startswith(">=")]
    upper_bounds = [_numbers(bound[1:]) for bound in bounds.split(",") if re.match(r"<[^=]", bound)]
    version = _numbers(installed_version)
    return all(version >= bound for bound in lower_bounds) and all(version < bound for bound in upper_bounds)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def check_jars() -> Iterator[Finding]:
    for name, locked_jars in jars.sets().items():
        subject = f"{name} jars"
        if bad_jars := jars.bad_jars(name):
            rest_text = f" and {len(bad_jars) - 1} more" if len(bad_jars) > 1 else ""
            yield Finding(
                subject, f"{bad_jars[0]}{rest_text} missing or not what jars.lock says", "`sluice setup` downloads them"
            )
            continue
        try:
            jars.folder(name)
        except SetupError as error:  # all there, but the download was interrupted before it wrote its stamp
            yield Finding(subject, error.message, error.hint)
        else:
            yield Finding(subject, f"{len(locked_jars)} checked")


def check_decoders() -> Iterator[Finding]:
    try:
        build.built()
    except SetupError as error:
        yield Finding("decoders", error.message, error.hint)
    else:
        yield Finding("decoders", "compiled")


def check_registry() -> Iterator[Finding]:
    """The registry; a problem only if it was ever started here."""
    was_started = folder("registry").exists()
    try:
        program = registry.java()
    except SetupError as error:
        state = error.message if was_started else f"not used so far; {error.message}; {error.hint}"
        yield Finding("registry", state, error.hint if was_started else "")
        return
    if not jars.are_here("registry"):
        yield Finding("registry", f"not on this machine, `sluice services up registry` downloads it; it will run with {program}")
    else:
        yield Finding("registry", f"on this machine, runs with {program}")


def check_ports() -> Iterator[Finding]:
    for service in services().values():
        if service.name != USUAL and not folder(service.name).exists():  # never started here
            continue
        subject = f"{service.name} ports"
        own_process = process.running(folder(service.name))
        try:
            ports = own_process.ports if own_process else service.ports()
        except SetupError as error:
            yield Finding(subject, error.message, error.hint)
            continue
        if own_process:
            yield Finding(subject, f"{', '.join(map(str, ports))} held by our own {service.name}, process {own_process.pid}")
            continue
        busy_ports = [f"{port} by {listener(port) or 'another process'}" for port in ports if not is_free(port)]
        if busy_ports:
            yield Finding(subject, f"held: {', '.join(busy_ports)}", service.move)
        else:
            yield Finding(subject, f"{', '.join(map(str, ports))} free")


def check_disk() -> Iterator[Finding]:
    place = home()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        yield Finding("disk", f"{place} cannot be written to", "change its permissions, or set SLUICE_HOME to another folder")
        return
    free = shutil.disk_usage(place).free
    hint = "" if free >= DISK else f"make room, {DISK // GIB} GiB at least, or set SLUICE_HOME to a folder on another disk"
    yield Finding("disk", f"{free / GIB:.1f} GiB free for {home()}", hint)


def check_memory() -> Iterator[Finding]:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):  # a container's share
        text = Path(limit).read_text(encoding="ascii").strip() if Path(limit).is_file() else ""
        total = min(total, int(text)) if text.isdigit() else total
    # A machine sold with 4 GiB reports a little less.
    hint = (
        "" if total >= MEMORY * 0.9 else f"Spark and Kafka together need {MEMORY // GIB} GiB: give the machine or container more"
    )
    yield Finding("memory", f"{total / GIB:.1f} GiB", hint)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_java,
    check_packages,
    check_jars,
    check_decoders,
    check_registry,
    check_ports,
    check_disk,
    check_memory,
)
SLIM = (check_python, check_packages, check_disk)
