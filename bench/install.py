"""From a wheel to the first row of a table, as a new user would get there: what is downloaded depends on the network."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from framework.machine.services.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    "sluice init .",
    "sluice services up kafka",
    "sluice generate orders --count 1000",
    "sluice run",
    "sluice query 'select * from shop.orders limit 1'",
    "sluice services down",
)


def measured() -> dict[str, float]:
    """The seconds with an empty cache of jars, then those of a second folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = _wheel(folder / "sources")
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip = (folder / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
        subprocess.run([*pip, "install", "--quiet", wheel], check=True)
        packages = time.monotonic() - began
        first_run, second_run = (_first_row(folder, name) for name in ("one", "two"))
    return {
        "install_packages_s": packages,
        "install_to_first_row_s": packages + first_run,
        "init_to_first_row_cached_s": second_run,
    }


def _wheel(sources: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", ROOT, sources], check=True)
    run = partial(subprocess.run, cwd=sources, check=True, env={**os.environ, "PYTHONPATH": str(sources)})
    run([sys.executable, "-m", "framework.machine.jvm.build"])
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist", "."])
    return next((sources / "dist").glob("*.whl"))


def _first_row(folder: Path, name: str) -> float:
    (folder / name).mkdir()
    port = str(free_port(2))
    environment = {
        variable: value for variable, value in os.environ.items() if not variable.startswith(("SLUICE_", "PYTHONPATH"))
    }
    environment |= {
        "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache"),
        "SLUICE_KAFKA_PORT": port, "SLUICE_VAR_KAFKA": f"127.0.0.1:{port}",
    }  # fmt: skip
    began = time.monotonic()
    for command in COMMANDS[:-1]:
        subprocess.run(command, shell=True, check=True, cwd=folder / name, env=environment, stdout=subprocess.DEVNULL)
    duration = time.monotonic() - began
    subprocess.run(COMMANDS[-1], shell=True, check=True, cwd=folder / name, env=environment, stdout=subprocess.DEVNULL)
    return duration
