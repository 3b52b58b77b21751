"""Exactly once, proven by killing: a run dies or stops at every kill point, and the ledger is asked afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from contextlib import suppress

import pytest

from framework.core.maintain import maintain
from framework.core.maintain.maintain import KILL_POINTS as MAINTENANCE
from framework.core.rules.protocol import KILL_POINTS
from framework.core.run.run import batches
from framework.operations.forget import forget
from framework.operations.undo import replay
from tests.support.people import ANN, BOB, ORDERS, files_with, order
from tests.support.project import TRADES, Project
from tests.support.runs import published
from tests.support.selection import few
from tests.support.victims import PATIENCE, victim

COPY = """---
pipeline: copy
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.copy}}
"""
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
FORGET = f"forget:email={ANN}"


@pytest.mark.parametrize("point", few(KILL_POINTS, "checked"))  # test_keyed_model.py has all of them
def test_each_message_lands_once_after_a_kill_at(project: Project, point: str) -> None:
    project.make_topic()
    project.send_good(30, bad_every=10)
    project.run()
    project.send_good(60, bad_every=10)
    committed = project.files()

    with victim(project, point, signal.SIGKILL) as process:
        process.wait(PATIENCE)
    project.send_good(6)
    project.run()

    project.assert_exactly_once()
    project.assert_counted_once()
    after = project.files()
    assert {path: after[path] for path in committed} == committed, "a committed file was rewritten"
    # After the next run, all that the killed one left is gone, except for files that no commit knows: at most those of one batch.
    assert project.branches() == []
    assert len(project.unreferenced()) <= 3


@pytest.mark.parametrize("point", few(["branched", "staged", "checked", "published"], "checked"))
def test_stopped_at_while_another_goes_on(project: Project, point: str) -> None:
    project.make_topic()
    project.send_good(30, bad_every=10)
    project.run()
    project.send_good(60, bad_every=10)

    with victim(project, point, signal.SIGSTOP) as process:
        project.send_good(9, bad_every=3)
        project.run()
        project.send_good(5)
        project.run()
        os.kill(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "ended" in output
    assert "refused" not in output
    project.run()

    project.assert_exactly_once()
    project.assert_counted_once()
    assert project.branches() == []


@pytest.mark.long
def test_killed_while_the_table_is_born(project: Project) -> None:
    project.make_topic()
    project.send_good(30, bad_every=10)
    for point in ("opened", "staged_bad_rows"):
        with victim(project, point, signal.SIGKILL) as process:
            process.wait(PATIENCE)
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []


@pytest.mark.long
def test_two_runs_at_once(project: Project) -> None:
    project.more = "batch: {rows: 25}"
    project.make_topic()
    project.send_good(150, bad_every=10)

    with victim(project, "opened", signal.SIGCONT) as process:
        project.run()
        output, _ = process.communicate(timeout=PATIENCE)

    assert "ended" in output
    assert "refused" not in output
    project.assert_exactly_once()
    # Each run may have left its branch, because the other one committed just then; the next batch sweeps it.
    project.send_good(1)
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []


@pytest.mark.long
@pytest.mark.parametrize("point", MAINTENANCE[:-1])  # snapshots that could expire are too young here
def test_maintenance_killed_at(project: Project, point: str) -> None:
    project.make_topic()
    for _ in range(7):
        project.send_good(30, bad_every=10)
        project.run()
    before = sorted(project.rows(), key=str)
    with victim(project, point, signal.SIGKILL, "maintain") as process:
        process.wait(PATIENCE)
    assert sorted(project.rows(), key=str) == before
    project.send_good(30, bad_every=10)
    project.run()
    project.assert_exactly_once()
    context = project.context()
    list(maintain.maintain(context, context.plan.pipelines[0]))
    project.assert_exactly_once()
    assert project.branches() == []


@pytest.mark.long
@pytest.mark.parametrize("point", forget.KILL_POINTS)
def test_forgetting_killed_at(project: Project, point: str) -> None:
    project.make_topic()
    for _ in range(2):
        project.send_good(30, bad_every=10)
        project.run()
    with victim(project, point, signal.SIGKILL, "forget") as process:
        process.wait(PATIENCE)
    project.send_good(30, bad_every=10)
    project.run()
    context = project.context()
    pipeline = context.plan.pipelines[0]
    list(forget.forget(context, pipeline, forget.judged(context, pipeline, {"id": "7"}).key))
    assert sorted(row["id"] for row in project.rows()) == [number for number in range(90) if number % 10 and number != 7]
    assert project.branches() == []
    assert len(project.unreferenced()) <= 3


@pytest.mark.long
@pytest.mark.parametrize("point", ["staged", "checked", "published"])
def test_a_replay_killed_at(project: Project, point: str) -> None:
    project.topic_more = ""
    project.template = TRADES.replace("when: price > 900", "when: 1 / price > 900")
    project.make_topic()
    project.send(json.dumps({"id": number, "price": number % 5}).encode() for number in range(60))
    project.run()
    project.template = TRADES
    with victim(project, point, signal.SIGKILL, "replay") as process:
        process.wait(PATIENCE)
    project.send_good(6)
    project.run()
    project.assert_exactly_once()
    context = project.context()
    published(replay.replay(context, context.plan.pipelines[0], replay.condition(""), lambda: False))
    project.assert_exactly_once()
    assert {row["state"] for row in project.rows(bad=True)} == {"replayed"}
    assert project.branches() == []


@pytest.mark.long
def test_forgetting_and_replays_killed_at_any_moment(project: Project) -> None:
    """Replays and forgetting die some tenths of a second after a point, with runs of another process in between."""
    moments = random.Random(20261128)
    project.template = ORDERS % ""
    project.more = "steps: [{derive: {ratio: 10 / amount}}]"
    project.make_topic(1)

    def send(first_number: int) -> None:
        project.produce(
            order(email, first_number + number, amount) for email in (ANN, BOB) for number, amount in enumerate((1, 0, "x"))
        )

    send(0)
    project.run()
    project.more = "steps: [{derive: {ratio: 10 / (amount + 1)}}]"
    points = [
        ("replay", "branched"), (FORGET, "remembered"), ("replay", "staged"), (FORGET, "deleted"), ("replay", "checked"),
        (FORGET, "ended"), ("replay", "published"), (FORGET, "deleted_bad_rows"),
    ]  # fmt: skip
    for number, (action, point) in enumerate(points, 1):
        with suppress(pytest.fail.Exception), victim(project, point, signal.SIGCONT, action) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0, 0.6))
            process.kill()
        if number % 4 == 2:
            send(10 * number)
            project.run()
    project.run()
    context = project.context()
    pipeline = context.plan.pipelines[0]
    published(replay.replay(context, pipeline, replay.condition(""), lambda: False))
    list(forget.forget(context, pipeline, forget.judged(context, pipeline, {"email": ANN}).key))
    assert files_with(project) == set()
    assert sorted(row["id"] for row in project.rows()) == [0, 1, 20, 21, 60, 61]
    assert sorted((row["offset"], row["state"]) for row in project.rows(bad=True)) == [
        (4, "replayed"), (5, "open"), (11, "open"), (17, "open")
    ]  # fmt: skip
    assert project.branches() == []


@pytest.mark.long
@pytest.mark.parametrize("point", ["staged", "checked", "published"])
def test_a_batch_from_a_table_killed_at(project: Project, point: str) -> None:
    project.template = TRADES + COPY
    project.make_topic()
    context = project.context()
    trades, copy = (next(pipeline for pipeline in context.plan.pipelines if pipeline.name == name) for name in ("trades", "copy"))
    for _ in range(2):
        project.send_good(30)
        list(batches(context, trades))
        with victim(project, point, signal.SIGKILL, "run:copy") as process:
            process.wait(PATIENCE)
    list(batches(context, copy))
    ids = f"select id from lake.{project.namespace}."
    assert sorted(project.sql(f"{ids}copy")) == sorted(project.sql(f"{ids}trades"))
