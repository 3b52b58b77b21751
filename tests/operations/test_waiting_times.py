"""How long messages have waited, by the ends of partitions at earlier looks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from framework.core.rules.journal import RunRecord
from framework.operations.observe.progress import Offsets, PipelineProgress
from framework.operations.observe.status import Status, status_from
from framework.operations.observe.waiting_times import WaitingTimes
from framework.plan import Pipeline
from tests.support.alerting import ORDERS
from tests.support.project import plan_for
from tests.support.shop import NOWHERE

BEGIN = datetime(2026, 11, 30, tzinfo=timezone.utc)


@pytest.fixture
def pipelines(tmp_path: Path) -> tuple[Pipeline, ...]:
    return plan_for(tmp_path, NOWHERE, ORDERS).pipelines


def waited(times: WaitingTimes, pipeline: Pipeline, seconds: float, position: int, end: int) -> float:
    """The seconds that the message at a position has waited, so long after the beginning."""
    offsets = (Offsets("orders/0", position, end),)
    progress = PipelineProgress(pipeline=pipeline.name, table=pipeline.table.identifier, offsets=offsets)
    status: Status = status_from(pipeline, progress, RunRecord(), None, BEGIN + timedelta(seconds=seconds))
    return times.noted(status).waited["orders/0"]


def test_the_time_between_two_looks_is_interpolated(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    assert waited(times, pipelines[0], 0, 100, 100) == 0
    assert waited(times, pipelines[0], 10, 100, 200) == pytest.approx(9.9), (
        "message 100 was the first of a hundred in ten seconds"
    )
    assert waited(times, pipelines[0], 20, 150, 200) == pytest.approx(14.9)
    assert waited(times, pipelines[0], 30, 199, 200) == pytest.approx(20)
    assert waited(times, pipelines[0], 40, 200, 200) == 0


def test_a_quiet_partition_dates_a_message_by_the_last_look_before_it(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    for seconds in range(0, 1000, 10):
        waited(times, pipelines[0], seconds, 100, 100)
    assert waited(times, pipelines[0], 1000, 100, 101) == pytest.approx(0)
    assert waited(times, pipelines[0], 1060, 100, 101) == pytest.approx(60)


def test_what_waited_before_the_first_look_has_waited_since_then(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    assert [waited(times, pipelines[0], seconds, 5, 100) for seconds in (0, 10, 20)] == [0, 10, 20]


def test_pipelines_of_one_topic_have_positions_of_their_own(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    copy, orders = pipelines
    waited(times, copy, 0, 10, 10), waited(times, orders, 0, 10, 10)
    assert waited(times, copy, 10, 20, 20) == 0
    assert waited(times, orders, 10, 10, 19) == pytest.approx(9)
    assert waited(times, orders, 20, 10, 20) == pytest.approx(19), "an end that was read a moment earlier is no other topic"


def test_a_topic_that_is_another_begins_anew(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    waited(times, pipelines[0], 0, 1000, 1000)
    assert waited(times, pipelines[0], 10, 0, 5) == 0
    assert waited(times, pipelines[0], 20, 0, 5) == 10


def test_a_clock_that_goes_back_is_no_negative_time(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    waited(times, pipelines[0], 1000, 0, 5)
    assert [waited(times, pipelines[0], seconds, 0, 5) for seconds in (10, 20)] == [0, 10]


def test_long_backlogs_need_little_memory_and_stay_nearly_right(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    seconds = [waited(times, pipelines[0], look * 15, 0 if look < 2000 else 15_000, look * 15) for look in range(4000)]
    (ends,) = times._ends.values()
    assert len(ends.growths) <= 60 and seconds[1999] == pytest.approx(1999 * 15, abs=20)
    assert seconds[3999] == pytest.approx(3999 * 15 - 15_000, rel=0.05), "a message a second: the end is the time"


def test_a_quiet_time_before_many_messages_is_kept(pipelines: tuple[Pipeline, ...]) -> None:
    times, hours = WaitingTimes(), 36_000
    for seconds in range(0, hours, 15):
        waited(times, pipelines[0], seconds, 100, 100)
    looks = [waited(times, pipelines[0], hours + look * 15, 100, 110 + look * 10) for look in range(500)]
    assert looks == pytest.approx([look * 15 + 13.5 for look in range(500)], abs=16), "it came with the first burst"


def test_a_second_pipeline_that_sees_more_does_not_move_what_was_quiet(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    copy, orders = pipelines
    for hour in range(10):
        waited(times, copy, hour * 3600, 100, 100), waited(times, orders, hour * 3600, 100, 100)
    waited(times, copy, 36_000, 100, 100)
    assert waited(times, orders, 36_000, 100, 110) <= 3600, "between the last two looks"


def test_partitions_that_nobody_asks_for_are_forgotten(pipelines: tuple[Pipeline, ...]) -> None:
    times = WaitingTimes()
    waited(times, pipelines[0], 0, 0, 5)
    times.forget(BEGIN + timedelta(minutes=59))
    assert waited(times, pipelines[0], 3540, 0, 5) == 3540
    times.forget(BEGIN + timedelta(hours=3))
    assert waited(times, pipelines[0], 3 * 3600, 0, 5) == 0
