"""Where Sluice keeps its state on this machine: `.sluice/`, or the folder that SLUICE_HOME names."""

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


def dagster_home() -> Path:
    """Dagster's own folder, with its telemetry off and two runs at a time."""
    folder = home() / "dagster"
    settings = folder / "dagster.yaml"
    if not settings.exists():
        folder.mkdir(parents=True, exist_ok=True)
        settings.write_text(_DAGSTER, encoding="utf-8")
    return folder
