"""Where Sluice keeps its state on this machine: `.sluice/`, or the folder that SLUICE_HOME names."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    return Path(os.environ.get("SLUICE_HOME") or ".sluice").absolute()


def dagster_home() -> Path:
    """Dagster's own folder, with its telemetry off."""
    folder = home() / "dagster"
    settings = folder / "dagster.yaml"
    if not settings.exists():
        folder.mkdir(parents=True, exist_ok=True)
        settings.write_text("telemetry: {enabled: false}\nnux: {enabled: false}\n", encoding="utf-8")
    return folder
