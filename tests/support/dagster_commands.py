"""Dagster's own commands as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT


def started(folder: Path, *arguments: str, specs: Path | None = None, program: str = "dagster") -> subprocess.Popen[str]:
    """Starts one of Dagster's own commands."""
    (folder / "dagster").mkdir(exist_ok=True)
    (folder / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SLUICE_SPECS": str(specs or "specs"),
        "DAGSTER_HOME": str(folder / "dagster"),
    }
    command = [str(Path(sys.executable).with_name(program)), *arguments, "-m", "pipelines.definitions"]
    pipe = subprocess.PIPE
    place = Path.cwd() if specs else folder  # specs elsewhere are those of a project, whose lake is here
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=place, env=environment, start_new_session=True)


def dagster(
    folder: Path, *arguments: str, specs: Path | None = None, program: str = "dagster"
) -> subprocess.CompletedProcess[str]:
    with started(folder, *arguments, specs=specs, program=program) as process:
        output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
