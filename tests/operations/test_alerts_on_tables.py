"""Alerts on real tables: what their batches did, which rows they have, and how late they are."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from framework.base.clock import utc_now
from framework.core.run import run as running
from framework.operations.alerts.judge import judge
from tests.support.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
MORE = """fresh_within: 1m
expect: [{name: cheap, when: price < 500, else: warn}]
"""
ALERTS = {
    "late": "late",
    "bad": '{bad_rows: "> 2", in: 5m}',
    "few": '{rows: "< 10", in: 5m}',
    "many": '{rows: "> 10", in: 5m}',
    "large": '{rows: "> 5", where: "size = \'LARGE\'", in: 5m}',
    "check": "{check: cheap, in: 5m}",
    "refused": "[failing, suspended]",
}


@pytest.fixture
def alerted(project: Project, other_home: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SLUICE_HOME", str(other_home))  # where no other test has judged
    project.more = MORE + "".join(f"---\nalert: {name}\nwhen: {when}\n" for name, when in ALERTS.items())
    project.make_topic()
    return project


def holding(project: Project, seconds: float = 0.0) -> dict[str, str]:
    """The alerts that hold so many seconds from now, and why. Those of which nobody can know are `unknown`."""
    judgement = judge(project.plan, lambda: utc_now() + timedelta(seconds=seconds))
    assert judgement.failures == []
    return {judged.alert.name: judged.why or "unknown" for judged in judgement.judged if judged.holds or judged.unknown}


def test_what_batches_did_and_what_the_table_has(alerted: Project) -> None:
    assert holding(alerted, -310) == {"few": "0 rows in 5m"}
    holding(alerted, -200)
    alerted.send_good(1000, bad_every=250)
    alerted.run()
    assert holding(alerted) == {
        "bad": "4 bad rows in 5m",
        "many": "996 rows in 5m",
        "large": "99 rows where size = 'LARGE' in 5m",
        "check": "498 rows are not as `cheap` expects",
    }
    assert holding(alerted, 1000) == {"few": "0 rows in 5m"}, "all of that is over"


def test_nobody_knows_what_was_before_the_first_look(alerted: Project) -> None:
    alerted.send_good(20, bad_every=5)
    alerted.run()
    assert holding(alerted) == {"bad": "unknown", "few": "unknown", "many": "unknown", "check": "unknown"}


def test_a_table_is_late_while_messages_wait(alerted: Project) -> None:
    alerted.send_good(5)
    alerted.run()
    assert "late" not in holding(alerted, 300), "nothing waits"
    alerted.send_good(5)
    assert "late" not in holding(alerted)
    assert holding(alerted, 300)["late"].startswith("late: messages wait, and its last commit is 5 min old")
    alerted.run()
    assert "late" not in holding(alerted)


def test_a_refused_run_is_told_at_once(alerted: Project) -> None:
    alerted.send_good(5)
    alerted.run()
    alerted.delete_topic()
    alerted.make_topic()
    list(running.run(alerted.context(), alerted.pipeline))
    assert holding(alerted)["refused"] == "suspended: topic-recreated"
