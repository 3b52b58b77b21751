"""Runs in processes of their own that get a signal at a kill point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.repository import ROOT

PATIENCE = 120


@contextmanager
def victim(project: Project, point: str, number: signal.Signals, action: str = "run") -> Iterator[subprocess.Popen[str]]:
    """A run of another process, which has reached the point and got the signal there."""
    specs = Path(project.pipeline.where.file).parent
    command = [sys.executable, "-m", "tests.support.victim", str(specs), point, number.name, action]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "reached\n":
                break
        else:
            pytest.fail(f"the run ended before it reached {point}")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
