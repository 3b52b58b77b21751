"""The command `sluice` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.project import Project
from tests.support.repository import ROOT

SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")


def sluice(project: Project, *arguments: str, status: int = 0) -> str:
    specs = str(Path(project.pipeline.where.file).parent)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command: Sequence[str] = [*SLUICE, *arguments, "--specs", specs]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert result.returncode == status, result.stdout + result.stderr
    return (result.stdout + result.stderr).replace(f" --specs {specs}", "")
