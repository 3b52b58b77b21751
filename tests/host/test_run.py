"""`sluice run` and `sluice accept` as separate processes, as people start them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
SLUICE = [sys.executable, "-c", "from framework.host.cli import main; main()"]


def sluice(project: Project, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    specs = str(Path(project.pipeline.where.file).parent)
    return subprocess.run(
        [*SLUICE, *arguments, "--specs", specs],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def test_run_until_caught_up_and_nothing_new_needs_no_java(project: Project) -> None:
    project.make_topic()
    project.send_good(40, bad_every=10)

    result = sluice(project, "run", "trades")
    assert result.returncode == 0, result.stderr
    assert "trades: batch 1, 36 rows, 4 bad" in result.stdout
    assert "is caught up" in result.stdout

    nothing = sluice(project, "run", JAVA_HOME="/nowhere", PATH="/nowhere")
    assert (nothing.returncode, nothing.stderr) == (0, "")
    assert "is caught up" in nothing.stdout
    project.assert_exactly_once()


@pytest.mark.long
def test_a_refusal_is_told_and_accepted(project: Project) -> None:
    project.make_topic()
    project.send_good(12, bad_every=4)
    project.run()
    first_snapshot = project.sql("select snapshot_id from {table}.snapshots order by committed_at limit 1")[0][0]
    project.sql(f"call lake.system.rollback_to_snapshot('{{bare}}', {first_snapshot})")

    result = sluice(project, "run")
    assert result.returncode == 1
    assert "trades: rolled-back: the table" in result.stderr
    assert "Traceback" not in result.stderr
    accepted = sluice(project, "accept", "trades", "--yes")
    assert accepted.returncode == 0, accepted.stderr
    assert "12 messages are read again" in accepted.stdout
    project.run()
    project.assert_exactly_once()


@pytest.mark.long
@pytest.mark.parametrize("ask", [signal.SIGINT, signal.SIGTERM])
def test_an_end_that_is_asked_for_comes_behind_a_commit(project: Project, ask: signal.Signals) -> None:
    project.more = "batch: {rows: 50}"
    project.make_topic()
    project.send_good(250, bad_every=20)
    specs = str(Path(project.pipeline.where.file).parent)
    process = subprocess.Popen(
        [*SLUICE, "run", "--every", "1s", "--specs", specs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert process.stdout is not None
    first_line = process.stdout.readline()
    assert "batch 1," in first_line
    process.send_signal(ask)
    other_lines, errors = process.communicate(timeout=60)

    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "loading trades every 1s; Ctrl-C stops after the batch that is under way\n" in errors
    batches = [line for line in (first_line + other_lines).splitlines() if ": batch " in line]
    rows = sum(int(re.findall(r"(\d+) rows?,", line)[0]) for line in batches)
    summary = f"{rows} rows in {len(batches)} batch{'es' if len(batches) != 1 else ''}"
    assert f"stopped: {summary}, all committed; the next run continues there\n" in errors
    assert project.branches() == []
    landed = set(project.where())
    project.assert_exactly_once(landed)
    project.run()
    project.assert_exactly_once()


def test_unknown_names_and_wrong_usage(project: Project) -> None:
    unknown = sluice(project, "run", "trade")
    assert unknown.returncode == 1
    assert "there is no pipeline `trade`" in unknown.stderr
    assert "trades" in unknown.stderr
    assert sluice(project, "run", "--every", "soon").returncode == 2
