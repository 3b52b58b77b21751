"""`write: history` on real Kafka, Spark and Iceberg: every version of a key, with when it began and ended."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from framework.core.rules.protocol import UPSERT_POINTS
from framework.operations.trials.trial import Trials
from framework.plan.compare import differences
from framework.plan.lineage import lineage
from tests.support.customers import SPEC, customers, send
from tests.support.project import Project
from tests.support.refusals import accept_it
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
__all__ = ["customers"]


@pytest.fixture
def versions(customers: Project) -> Project:
    customers.template = SPEC.replace("write: upsert", "write: history")
    return customers


def version_rows(project: Project) -> list[tuple[Any, ...]]:
    """Returns key, name, begin and end in seconds; a current version has no end."""
    versions_ = []
    for row in project.rows():
        assert row["is_current"] == (row["valid_to"] is None)
        versions_.append(
            (row["id"], row["name"], *(time and int(time.timestamp()) for time in (row["valid_from"], row["valid_to"])))
        )
    return sorted(versions_, key=lambda version: (version[0], version[2]))


def test_versions_and_when(versions: Project) -> None:
    send(versions, (1, "a", 1000), (1, "b", 3000), (2, "x", 1000))
    (batch,) = versions.run()
    assert version_rows(versions) == [(1, "a", 1, 3), (1, "b", 3, None), (2, "x", 1, None)]
    assert batch.changed and (batch.changed.inserted, batch.changed.ended, batch.changed.deleted) == (3, 0, 0)
    send(versions, (1, "late", 2000), (2, None, 5000), (3, None, 5000), partition=1)
    (batch,) = versions.run()
    assert version_rows(versions) == [(1, "a", 1, 2), (1, "late", 2, 3), (1, "b", 3, None), (2, "x", 1, 5)]
    assert batch.changed and (batch.changed.inserted, batch.changed.ended) == (1, 2)
    send(versions, (2, "later", 4000), (2, "again", 6000), (3, "y", 4000), partition=2)
    versions.run()
    assert version_rows(versions)[3:] == [(2, "x", 1, 4), (2, "later", 4, 5), (2, "again", 6, None), (3, "y", 4, 5)]


@pytest.mark.long
def test_a_delete_that_is_forgotten_still_ended_a_version(versions: Project) -> None:

    def days_ago(days: int) -> None:
        versions.clock = lambda: datetime.now(timezone.utc) - timedelta(days=days)

    days_ago(9)
    send(versions, (1, "a", 1000), (1, None, 5000), (2, None, 5000))
    versions.run()
    days_ago(0)
    send(versions, (3, "x", 1000))
    versions.run()
    send(versions, (1, "b", 3000), (2, "b", 3000))
    versions.run()
    assert version_rows(versions) == [(1, "a", 1, 3), (1, "b", 3, 5), (2, "b", 3, None), (3, "x", 1, None)]


def test_a_version_without_a_time_is_a_bad_row(versions: Project) -> None:
    """A version without a time cannot be ordered. A tombstone has Kafka's time."""
    send(versions, (1, "a", None), (2, "a", 1000), (2, None, 5000))
    versions.run()
    assert version_rows(versions) == [(2, "a", 1, 5)]
    assert [(row["stage"], row["code"]) for row in versions.rows(bad=True)] == [("keys", "no_order")]


@pytest.mark.long
def test_what_is_read_a_second_time_adds_nothing(versions: Project) -> None:
    """A topic is deleted and filled again from a backup: only its new message adds a version."""
    messages: list[tuple[int | None, str | None, int | None]] = [(1, "a", 1000), (1, "b", 2000), (2, "x", 1000), (2, None, 3000)]
    send(versions, *messages)
    versions.run()
    before = version_rows(versions)
    assert before == [(1, "a", 1, 2), (1, "b", 2, None), (2, "x", 1, 3)]
    versions.delete_topic()
    versions.make_topic(3)
    send(versions, *messages, (1, "c", 4000))
    accept_it(versions)
    versions.run()
    assert version_rows(versions) == [(1, "a", 1, 2), (1, "b", 2, 4), (1, "c", 4, None), (2, "x", 1, 3)]


@pytest.mark.long
def test_a_test_in_the_spec(versions: Project) -> None:
    versions.more = """tests:
  - name: a tombstone ends a version
    given:
      - {id: 1, name: a, at: 2026-01-05T10:00:00Z}
      - new_batch
      - {message: {key: 1, value: null, at: 2026-01-05T12:00:00Z}}
      - new_batch
      - {id: 1, name: late, at: 2026-01-05T11:00:00Z}
    expect:
      - {name: a, valid_to: 2026-01-05T11:00:00Z}
      - {name: late, valid_from: 2026-01-05T11:00:00Z, valid_to: 2026-01-05T12:00:00Z, is_current: false}
"""
    pipeline = versions.pipeline
    (example,) = pipeline.examples
    outcome = Trials(versions.spark, versions.plan).run(pipeline, example)
    assert outcome.error is None
    assert list(differences(example, pipeline.table.columns, outcome.rows, outcome.bad)) == []
    assert all(lineage(pipeline)[name] == {"at"} for name in ("valid_from", "valid_to", "is_current"))


@pytest.mark.long  # of a key's newest row, test_upsert.py has one for each change
@pytest.mark.parametrize("point", UPSERT_POINTS)
def test_versions_are_right_after_a_kill_at(versions: Project, point: str) -> None:
    send(versions, *((key, "old", 1000) for key in range(20)))
    versions.run()
    send(versions, *((key, None if key % 2 else "new", 5000) for key in range(20)))
    with victim(versions, point, signal.SIGKILL) as process:
        process.wait(PATIENCE)
    send(versions, *((key, "late", 4000) for key in range(4)), partition=1)
    versions.run()
    new = [(key, "new", 5, None) for key in range(0, 20, 2)]
    late = [(key, "late", 4, 5) for key in range(4)]
    old = [(key, "old", 1, 4 if key < 4 else 5) for key in range(20)]
    assert version_rows(versions) == sorted([*new, *late, *old], key=lambda version: (version[0], version[2]))


@pytest.mark.long
@pytest.mark.parametrize("write", ["upsert", "history"])
def test_rows_of_others_come_between(customers: Project, write: str) -> None:
    """Rows that another program adds while a batch is staged stay, and the batch is merged with them."""
    customers.template = SPEC.replace("write: upsert", f"write: {write}")
    send(customers, (1, "a", 1000))
    customers.run()
    columns, values = (", valid_from, is_current", ", timestamp'1970-01-01 00:00:02Z', true") if write == "history" else ("", "")
    theirs = [f"INSERT INTO {{table}} (id, name, at{columns}) VALUES (2, 'theirs', timestamp'1970-01-01 00:00:02Z'{values})"]

    def hook(point: str) -> None:
        if point == "staged" and theirs:
            customers.sql(theirs.pop())

    send(customers, (1, "b", 3000), (2, "ours", 3000))
    customers.run(hook)
    rows = sorted((row["id"], row["name"], row.get("is_current", True)) for row in customers.rows())
    ended_rows = [(1, "a", False), (2, "theirs", False)] if write == "history" else []
    assert rows == sorted([(1, "b", True), (2, "ours", True), *ended_rows])
