"""State folders in which commands leave a JVM behind, and commands that use it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.base.home import home
from framework.core.spark import warm_jvm
from tests.support.processes import SLUICE
from tests.support.project import Project
from tests.support.repository import ROOT
from tests.support.victims import PATIENCE

# A process that locks a file as Java does.
LOCKS = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"


@pytest.fixture
def warm_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Makes a state folder in which commands leave a JVM behind."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SLUICE_COLD")
    monkeypatch.delenv("CI", raising=False)
    yield tmp_path / "home"
    warm_jvm.end()


def sluice(folder: Path, *arguments: str) -> str:
    command = [*SLUICE, *arguments, "--specs", str(folder)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def specs(project: Project) -> Path:
    return Path(project.pipeline.where.file).parent


def jvm() -> Any:
    return json.loads((home() / "warm" / "jvm").read_text())["pid"]
