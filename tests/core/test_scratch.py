"""Scratch folders of Spark: those of dead JVMs are deleted with their rows, and those in use stay."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework.core.spark import scratch
from tests.support.file_texts import everything
from tests.support.people import ANN, APPEND, BOB, HISTORY, UPSERT, order, orders
from tests.support.project import Project
from tests.support.warm_homes import LOCKS, jvm, sluice, specs, warm_home

__all__ = ["warm_home"]
DEDUP = APPEND.replace("{more}", "steps: [{{dedup: {{keys: [id]}}}}]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    return tmp_path / "spark"


def age(path: Path, seconds: float) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_a_folder_goes_once_neither_its_starter_nor_its_jvm_lives(folder: Path) -> None:
    mine, theirs, dead = scratch.make(scratch.new_folder()), folder / "jvm-theirs", folder / "jvm-dead"
    for place in (mine, theirs, dead):
        age(place, 100)
    command = [sys.executable, "-c", LOCKS, scratch.lock_of_jvm(theirs)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        age(theirs, 100)
        assert scratch.sweep() == 1
        assert sorted(scratch.held_folders()) == sorted([mine, theirs])
        process.kill()
    assert not dead.exists()
    assert scratch.sweep(also_young=True) == 1
    assert list(folder.iterdir()) == [mine]
    scratch.end_own(0)
    assert list(folder.iterdir()) == []


def test_a_young_folder_may_belong_to_a_jvm_that_starts(folder: Path) -> None:
    young = age(folder / "jvm-young", 10)
    assert (scratch.sweep(), young.exists()) == (0, True)
    assert (scratch.sweep(also_young=True), young.exists()) == (1, False)


def test_what_an_older_version_left_goes_after_an_hour(folder: Path) -> None:
    old, recent = age(folder / "blockmgr-1", 4000), age(folder / "blockmgr-2", 1000)
    scratch.sweep()
    assert (old.exists(), recent.exists()) == (False, True)


def having(text: str, *folders: Path) -> list[Path]:
    return sorted({path for folder in folders for path, content in everything(folder) if text in content})


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize(
    "template",
    [
        pytest.param(APPEND, id="append", marks=pytest.mark.long),
        pytest.param(UPSERT, id="upsert"),
        pytest.param(HISTORY, id="history", marks=pytest.mark.long),
        pytest.param(DEDUP, id="dedup", marks=pytest.mark.long),
    ],
)
def test_forget_leaves_no_file_of_the_project_with_the_person(project: Project, warm_home: Path, template: str) -> None:
    project.template = template
    project.make_topic(1)
    warehouse = project.lake / "warehouse" / project.namespace
    project.produce(orders(ANN, BOB, ANN))
    sluice(specs(project), "run")
    killed = jvm()
    os.kill(killed, signal.SIGKILL)
    project.produce([order(ANN, 11), order(BOB, 12), {"key": ANN, "value": "not json".encode("utf-16"), "partition": 0}])
    sluice(specs(project), "run")
    assert jvm() != killed
    project.produce(orders(ANN, "carl@example.com"))
    sluice(specs(project), "run")
    if template in (UPSERT, HISTORY):
        assert having(ANN, warm_home / "spark"), "Spark shuffled no row of the person, so that this shows nothing"

    output = sluice(specs(project), "forget", "trades", "--key", f"email={ANN}", "--yes")
    assert "until the Spark ends" not in output
    assert having(ANN, warm_home, warehouse) == []
    assert list((warm_home / "spark").iterdir()) == []
    shutil.rmtree(warm_home / "spark")
