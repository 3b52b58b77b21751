"""A `late_after` that changes between runs judges the messages that come next, and no row that is in the table."""

from __future__ import annotations

import json

import pytest

from framework.host.cli.plan import next_run_lines
from framework.operations.observe.next_run import next_runs
from tests.support.project import Project
from tests.support.rollbacks import replayed, rolled_back, snapshots

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOTALS = """
topic: trades
kafka_name: {topic}
value: json
event_time: at
columns: {{quantity: bigint, at: timestamp}}
---
pipeline: trades
from: {{topic: trades}}
steps: [{{aggregate: {{window: {{column: at, every: 1h}}, measures: {{total: sum(quantity)}}}}}}]
into: {{table: {namespace}.trades, write: accumulate{more}}}
"""


def run(project: Project, late_after: str, *trades: tuple[str, int]) -> tuple[int, list[str]]:
    """Loads trades, each a time and a quantity; returns the number of bad rows, and the lines of `sluice plan` before the run."""
    project.more = f", late_after: {late_after}" if late_after else ""
    project.send(
        [json.dumps({"quantity": quantity, "at": f"2026-01-05T{time}:00Z"}).encode() for time, quantity in trades], partition=0
    )
    (next_run,) = next_runs(project.plan, project.plan.pipelines)
    lines = list(next_run_lines(next_run))
    (batch,) = project.run()
    return batch.bad, lines


def total(project: Project) -> int:
    return sum(row["total"] for row in project.rows())


def test_late_after_judges_what_comes_and_a_replay_judges_again(project: Project) -> None:
    project.template = TOTALS
    project.make_topic(1)
    assert run(project, "", ("12:00", 1))[0] == 0
    bad, lines = run(project, "1h", ("10:30", 2), ("11:30", 4))
    assert (bad, total(project)) == (1, 5)
    assert lines[0] == "table is as the spec says"
    assert "existing rows stay as the previous spec made them" in lines
    assert run(project, "2h", ("10:30", 8))[0] == 0
    assert total(project) == 13
    replayed(project)
    assert total(project) == 15
    assert run(project, "1m", ("11:30", 16), ("12:00", 32))[0] == 1
    replayed(project)
    assert total(project) == 47
    assert run(project, "", ("01:00", 64))[0] == 0
    replayed(project)
    assert total(project) == 127
    assert {row["state"] for row in project.rows(bad=True)} == {"replayed"}


def test_the_newest_time_is_recorded_without_late_after_and_goes_back_with_a_rollback(project: Project) -> None:
    project.template = TOTALS
    project.make_topic(1)
    run(project, "", ("10:00", 1))
    run(project, "", ("12:00", 2))
    project.more = ", late_after: 1h"
    rolled_back(project, snapshots(project)[1])
    project.run()
    assert total(project) == 3
    assert run(project, "1h", ("10:30", 4), ("11:30", 8))[0] == 1
    assert total(project) == 11
