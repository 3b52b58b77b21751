"""Where Sluice keeps its state on this machine: `.sluice/`, or the folder that SLUICE_HOME names."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    return Path(os.environ.get("SLUICE_HOME") or ".sluice").absolute()
