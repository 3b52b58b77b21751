"""Commands on a table of totals: each message counts once, after each undo, rebuild or forget."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from typing import Any

import pytest

from framework.operations.forget import forget
from framework.operations.undo import accept, read_again, replay, rollback
from tests.support.project import Project
from tests.support.rebuilds import rebuilt
from tests.support.rollbacks import snapshots
from tests.support.runs import published

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]
SPEC = """
topic: trades
kafka_name: {topic}
value: json
columns: {{user: string, amount: {more}}}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - derive: {{value: cast(amount as bigint)}}
  - aggregate: {{by: [user], measures: {{total: sum(value), trades: count(*), users: count(distinct user)}}}}
into: {{table: {namespace}.trades, write: accumulate}}
"""


WINDOWS = """
topic: trades
kafka_name: {topic}
value: json
event_time: at
columns: {{user: string, at: timestamp}}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - aggregate: {{by: [user], window: {{column: at, every: 1m}}, measures: {{trades: count(*)}}}}
into: {{table: {namespace}.trades, write: accumulate, late_after: 1h}}
"""


@pytest.fixture
def totals(project: Project) -> Project:
    project.template, project.more = SPEC, "bigint"
    project.make_topic(1)
    return project


def send(project: Project, *trades: tuple[str, Any]) -> None:
    project.send([json.dumps({"user": user, "amount": amount}).encode() for user, amount in trades], 0)


def totals_by_user(project: Project, table: str = "") -> dict[str, tuple[int, int]]:
    rows = project.spark.table(f"lake.{table or project.pipeline.table.identifier}").collect()
    return {row["user"]: (row["total"], row["trades"]) for row in rows}


def sums_by_user(*trades: tuple[str, int]) -> dict[str, tuple[int, int]]:
    sums: Counter[str] = Counter()
    for user, amount in trades:
        sums[user] += amount
    return {user: (total, sum(trader == user for trader, _ in trades)) for user, total in sums.items()}


def test_a_rollback_takes_back_what_was_added(totals: Project) -> None:
    first_trades, second_trades = (("a", 1), ("b", 2)), (("a", 10), ("c", 5))
    send(totals, *first_trades)
    totals.run()
    before = snapshots(totals)[-1]
    send(totals, *second_trades)
    totals.run()
    context = totals.context()
    meaning = rollback.judged(context, context.plan.pipelines[0], before)
    accept.move(context, context.plan.pipelines[0], meaning.moves)
    assert totals_by_user(totals) == sums_by_user(*first_trades)
    totals.run()
    assert totals_by_user(totals) == sums_by_user(*first_trades, *second_trades)


def test_a_rollback_opens_windows_again(project: Project) -> None:
    """Lateness counts from the newest row of current batches, not of a batch that was rolled back."""
    project.template = WINDOWS
    project.make_topic(1)
    moments = ("2026-01-05T10:00:00Z", "2026-01-05T10:00:10Z", "2099-01-01T00:00:00Z")
    for moment in moments[:2]:
        project.send([json.dumps({"user": "a", "at": moment}).encode()], 0)
    project.run()
    before = snapshots(project)[-1]
    project.send([json.dumps({"user": "a", "at": moments[2]}).encode()], 0)
    project.run()
    context = project.context()
    meaning = rollback.judged(context, context.plan.pipelines[0], before)
    accept.move(context, context.plan.pipelines[0], meaning.moves)
    project.send([json.dumps({"user": "a", "at": moments[1]}).encode()], 0)
    project.run()

    assert project.rows(bad=True) == []
    assert sorted(row["trades"] for row in project.rows()) == [1, 3]


def test_a_rebuild_computes_them_again(totals: Project) -> None:
    trades = (("a", 1), ("b", 2), ("a", 3))
    send(totals, *trades[:2])
    totals.run()
    send(totals, *trades[2:])
    totals.run()
    context = totals.context()
    pipeline = context.plan.pipelines[0]
    assert rebuilt(context, pipeline) is not None
    assert totals_by_user(totals) == sums_by_user(*trades)
    send(totals, ("b", 7))
    totals.run()
    assert totals_by_user(totals) == sums_by_user(*trades, ("b", 7))


def test_bad_rows_that_are_replayed_are_added_once(totals: Project) -> None:
    send(totals, ("a", 1), ("a", "12"), ("b", "3"))
    totals.run()
    assert totals_by_user(totals) == sums_by_user(("a", 1))
    totals.more = "string"  # which takes both
    context = totals.context()
    pipeline = context.plan.pipelines[0]
    for _ in range(2):
        published(replay.replay(context, pipeline, replay.condition(""), lambda: False))
    assert totals_by_user(totals) == sums_by_user(("a", 1), ("a", 12), ("b", 3))
    send(totals, ("b", "4"))
    totals.run()
    assert totals_by_user(totals) == sums_by_user(("a", 1), ("a", 12), ("b", 3), ("b", 4))


def test_a_group_that_is_forgotten_stays_forgotten(totals: Project) -> None:
    send(totals, ("a", 1), ("b", 2))
    totals.run()
    context = totals.context()
    pipeline = context.plan.pipelines[0]
    list(forget.forget(context, pipeline, forget.judged(context, pipeline, {"user": "a"}).key))
    assert totals_by_user(totals) == sums_by_user(("b", 2))
    send(totals, ("a", 5), ("b", 5))
    totals.run()
    assert totals_by_user(totals) == sums_by_user(("b", 2), ("b", 5))


def test_those_since_a_time_are_in_another_table(totals: Project) -> None:
    send(totals, ("a", 1), ("b", 2))
    totals.run()
    start = datetime.now(timezone.utc)
    send(totals, ("a", 5), ("c", 5))
    totals.run()
    context, other_table = totals.context(), f"{totals.namespace}.since"
    meaning = read_again.judged(context, context.plan.pipelines[0], start, other_table)
    assert published(read_again.read(context, meaning, lambda: False))
    assert totals_by_user(totals, other_table) == sums_by_user(("a", 5), ("c", 5))
    assert totals_by_user(totals) == sums_by_user(("a", 1), ("b", 2), ("a", 5), ("c", 5))
