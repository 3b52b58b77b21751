"""Where Sluice keeps its state on this machine: `.sluice/`, or the folder that SLUICE_HOME names.

Rows, secrets, logs with values and Dagster's history are in it, so that it is made for its owner alone. One that is there already
keeps the mode that somebody gave it.
"""

from __future__ import annotations

import os
from pathlib import Path

_DAGSTER = """\
telemetry: {enabled: false}
nux: {enabled: false}
# Each run starts a Spark of its own.
concurrency: {runs: {max_concurrent_runs: 2}}
"""


def home() -> Path:
    return Path(os.environ.get("SLUICE_HOME") or ".sluice").absolute()


def private(*parts: str) -> Path:
    """A folder in it, made if it is not there."""
    home().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = home().joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def dagster_home() -> Path:
    """Dagster's own folder, with its telemetry off and two runs at a time."""
    folder = private("dagster")
    settings = folder / "dagster.yaml"
    if not settings.exists():
        settings.write_text(_DAGSTER, encoding="utf-8")
    return folder
