"""The sums of all batches of a table: each batch counts once, and nothing is taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from framework.core.rules import daily_work, work
from framework.core.rules.daily_work import DayWork
from framework.core.rules.work import OTHERS, PROPERTY, Work
from tests.support.project import Project, losing_answers
from tests.support.rebuilds import run_rebuild
from tests.support.rollbacks import rolled_back, snapshots

DONE = Work(batches=1, read=5, rows=3, bad={"undecodable": 2}, seconds={"stage": 0.1234}, lasted={"0.25": 1})


def test_sums_are_read_as_they_were_written() -> None:
    total = DONE + DONE + Work(batches=1, bad={"too-old": 1})
    assert work.read({PROPERTY: total.text()}) == total
    assert (total.batches, total.rows, dict(total.bad)) == (3, 6, {"undecodable": 4, "too-old": 1})
    assert total.seconds["stage"] == pytest.approx(0.247)


NO_SUMS = [
    "", "no json", "[]", "null", "[" * 100_000, '{"rows": "many"}', '{"rows": [1]}', '{"rows": true}', '{"rows": -1}', '{"rows": 1.5}',
    '{"rows": 1' + 400 * "0" + "}", '{"bad": 3}', '{"bad": {"a": "b"}}', '{"bad": {"\\ud800": 1}}', '{"seconds": {"stage": NaN}}',
    '{"seconds": {"stage": Infinity}}', '{"seconds": {"stage": 1' + 400 * "0" + "}}",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_SUMS, ids=range(len(NO_SUMS)))
def test_what_cannot_be_read_counts_as_none(text: str) -> None:
    assert work.read({PROPERTY: text}) == Work()
    assert work.read({}) == Work()


def test_what_a_later_version_counts_is_left_out() -> None:
    assert work.read({PROPERTY: '{"rows": 3, "watts": {"a": 1}}'}) == Work(rows=3)


def test_many_names_become_one() -> None:
    total = sum((Work(unmet={f"rule{number}": 1}) for number in range(100)), Work())
    assert len(total.unmet) == 51 and sum(total.unmet.values()) == 100 and total.unmet[OTHERS] == 50


@pytest.mark.parametrize(("seconds", "name"), [(0.0, "0.25"), (0.25, "0.25"), (0.26, "0.5"), (300.0, "300.0"), (301.0, "+Inf")])
def test_a_batch_is_counted_at_the_least_bound(seconds: float, name: str) -> None:
    assert work.bound(seconds) == name


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_each_batch_counts_once_whatever_the_catalog_answers(project: Project) -> None:
    project.make_topic()
    project.send_good(30, bad_every=10)
    commit, lost = losing_answers(1)
    project.run()  # makes the table
    begun, first = len(objects(project)), project.work()
    project.send_good(30, bad_every=10)
    project.run(commit=commit)
    assert len(lost) == 1
    project.send_good(20)
    project.run()
    project.assert_counted_once()
    done = project.work()
    assert (done.batches, dict(done.bad)) == (3, {"undecodable": 6})
    assert done.seconds["stage"] > 0 and sum(done.lasted.values()) == 3
    assert done.files == len(project.files()) and done.bytes > 0
    assert done.objects - first.objects == len(objects(project)) - begun
    rolled_back(project, snapshots(project)[1])
    assert project.work() == done, "the work was done, though its rows are gone"
    run_rebuild(project)
    assert project.work().read == done.read + 80, "a rebuild reads all once more"


def objects(project: Project) -> list[Path]:
    """The files in the folder of the table."""
    folder = project.lake / "warehouse" / project.namespace / "trades"
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


DAY = DayWork(batches=1, read=5, read_bytes=100, files=2, bytes=900, objects=5, seconds=0.25)
BATCH = Work(batches=1, read=5, read_bytes=100, files=2, bytes=900, objects=5, seconds={"start": 0.2, "stage": 0.05})


def test_a_batch_counts_on_the_day_it_ends() -> None:
    properties: dict[str, str] = {}
    for time in (
        datetime(2026, 11, 29, 23, 59, tzinfo=timezone.utc),
        datetime(2026, 11, 30, 1, tzinfo=timezone(timedelta(hours=2))),
    ):
        properties = daily_work.with_batch(properties, BATCH, time)
    properties = daily_work.with_batch(properties, BATCH, datetime(2026, 11, 30, 0, tzinfo=timezone.utc))
    assert daily_work.read(properties) == {date(2026, 11, 29): DAY + DAY, date(2026, 11, 30): DAY}
    assert work.read(properties).batches == 3


def test_forty_days_are_kept_in_little_space() -> None:
    properties: dict[str, str] = {}
    busy = Work(
        batches=86400, read=10**9, read_bytes=10**12, files=10**6, bytes=10**12, objects=10**6, seconds={"stage": 86399.999}
    )
    for number in range(100):
        properties = daily_work.with_batch(properties, busy, datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=number))
    days = daily_work.read(properties)
    assert len(days) == 40 and max(days) == date(2026, 1, 1) + timedelta(days=99)
    assert len(properties[daily_work.PROPERTY]) < 4000


def test_days_that_a_wrong_clock_put_into_the_future_go() -> None:
    properties: dict[str, str] = {}
    time = datetime(2026, 11, 30, tzinfo=timezone.utc)
    for days in (400, 1, 0):
        properties = daily_work.with_batch(properties, BATCH, time + timedelta(days=days))
    assert daily_work.read(properties) == {date(2026, 12, 1): DAY, date(2026, 11, 30): DAY}


def test_a_rebuild_adds_its_own_days() -> None:
    time = datetime(2026, 11, 30, tzinfo=timezone.utc)
    own = daily_work.with_batch({}, replace(BATCH, bad={"undecodable": 1}), time - timedelta(days=1))
    second = daily_work.with_batch({}, replace(BATCH, bad={"undecodable": 1}), time)
    properties = daily_work.with_rebuild(own, second)
    assert daily_work.read(properties) == {date(2026, 11, 29): DAY, date(2026, 11, 30): replace(DAY, read_bytes=0)}
    assert work.read(properties).bad == {"undecodable": 1}


NO_DAYS = [
    "", "no json", "[]", "null", "[" * 100_000, '{"2026-11-30": 3}', '{"2026-13-30": [1]}', '{"soon": [1]}', '{"2026-11-30": ["1"]}',
    '{"2026-11-30": [-1]}', '{"2026-11-30": [true]}', '{"2026-11-30": [NaN]}', '{"2026-11-30": [1e400]}',
]  # fmt: skip


@pytest.mark.parametrize("text", NO_DAYS, ids=range(len(NO_DAYS)))
def test_days_that_cannot_be_read_count_as_none(text: str) -> None:
    assert daily_work.read({daily_work.PROPERTY: text}) == {}


def test_days_of_other_versions_are_read() -> None:
    text = '{"2026-11-29": [1, 5], "2026-11-30": [1, 5, 100, 2, 900, 5, 0.25, 77]}'
    assert daily_work.read({daily_work.PROPERTY: text}) == {
        date(2026, 11, 29): DayWork(batches=1, read=5), date(2026, 11, 30): DAY,
    }  # fmt: skip
