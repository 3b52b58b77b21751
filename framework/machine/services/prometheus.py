"""Prometheus, which asks `sluice stream` and `sluice metrics` at their own ports for their numbers; Debian's program where none is
installed.

*Guarantee* What it has read survives a restart, for fifteen days.
*Limit* One server on this machine, without a login; who is warned of its alerts, Alertmanager, is not started.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import private
from framework.machine.services import http, process
from framework.machine.services.ports import pair
from framework.machine.services.process import Service

_PORT = "SLUICE_PROMETHEUS_PORT"
TARGETS = ("127.0.0.1:18184", "127.0.0.1:18185")  # of `sluice stream` and of `sluice metrics`
RULES = "rules"  # the folder with rules, in that of the service
_INSTALL = "install it (https://prometheus.io/download), so that `prometheus` is found in PATH"


def ports() -> tuple[int, int]:
    return pair(_PORT, 19090)


def page(ports: tuple[int, ...]) -> str:
    """The address of its page."""
    return f"http://127.0.0.1:{ports[0]}/"


@contextmanager
def running(home: Path, targets: Iterable[str], every: str = "1s", port: int | None = None) -> Iterator[str]:
    """A private Prometheus under `home` that asks these targets so often. Yields its URL and always stops it."""
    service = replace(SERVICE, prepare=lambda folder, ports: _prepare(folder, ports, targets, every))
    _get(lambda _: None)
    with process.private_service(service, home, port) as started:
        yield f"http://{started.address}"


def program(name: str) -> Path:
    """The path of `prometheus` or `promtool`, as installed or as it was got."""
    installed = shutil.which(name)
    return Path(installed) if installed else private("programs") / "prometheus" / "usr" / "bin" / name


def _get(say: Callable[[str], object]) -> None:
    """Gets Debian's package where no Prometheus is installed. apt checks its signature; nothing is installed."""
    if program("prometheus").exists():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise SetupError("no-prometheus", "there is no `prometheus` on this machine", _INSTALL)
    place = private("programs")
    with process.turn(place):
        if program("prometheus").exists():
            return
        say("prometheus: getting Debian's package, once ...")
        for old in place.glob("prometheus_*.deb"):
            old.unlink()
        hint = f"`apt-get update` may help, or {_INSTALL}"
        process.prepare("the download of Debian's package", hint, place, "apt-get", "download", "prometheus")
        (package,) = place.glob("prometheus_*.deb")
        shutil.rmtree(place / "prometheus.new", ignore_errors=True)
        process.prepare("the unpacking of it", _INSTALL, place, "dpkg-deb", "--extract", package.name, "prometheus.new")
        (place / "prometheus.new").rename(place / "prometheus")
        package.unlink()


def _prepare(folder: Path, ports: tuple[int, ...], targets: Iterable[str] = TARGETS, every: str = "15s") -> tuple[str, ...]:
    (folder / RULES).mkdir(exist_ok=True)
    config = {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": [f"{RULES}/*.yml"],
        "scrape_configs": [{"job_name": "sluice", "scrape_timeout": every, "static_configs": [{"targets": list(targets)}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config, indent=1), encoding="utf-8")  # JSON is YAML
    return (
        str(program("prometheus")), "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn",
        f"--web.listen-address=127.0.0.1:{ports[0]}",
    )  # fmt: skip


SERVICE = Service(
    name="prometheus",
    ports=ports,
    prepare=_prepare,
    answers=lambda port: http.status(port, "GET", "/-/ready") == 200,
    variable=_PORT,
    move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=29090",
    get=_get,
    page=page,
)
