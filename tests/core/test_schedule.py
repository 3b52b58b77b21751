"""When each pipeline of a stream has its next turn."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from framework.base.errors import BatchError
from framework.core.stream.schedule import LONGEST_PAUSE, Schedule
from framework.documents.make import make
from framework.plan import Pipeline
from tests.support.stream_specs import FROM_TOPIC, SOURCES

ERROR = BatchError("broken", "it is broken", "mend it")


class Time:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.started = datetime(2026, 3, 1, 6, 0, tzinfo=timezone.utc)

    def now(self) -> float:
        return self.seconds

    def clock(self) -> datetime:
        return self.started + timedelta(seconds=self.seconds - 1000)


@pytest.fixture
def time() -> Time:
    return Time()


def pipelines(folder: Path, **runs: str) -> list[Pipeline]:
    (folder / "specs").mkdir(exist_ok=True)
    texts = (FROM_TOPIC % (name, run, name) for name, run in runs.items())
    (folder / "specs" / "main.yaml").write_text(SOURCES + "".join(texts))
    return list(make(folder / "specs").pipelines)


def scheduled(time: Time, planned: list[Pipeline]) -> Schedule:
    return Schedule(planned, time.now, time.clock, random.Random(1))


def names(schedule: Schedule) -> list[str]:
    return [pipeline.name for pipeline in schedule.ready()]


def test_a_pipeline_runs_at_its_interval(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(time, pipelines(tmp_path, slow="every: 1m", quick="every: 5s"))
    assert names(schedule) == ["quick", "slow"]
    for name in ("slow", "quick"):
        schedule.began(name)
    assert names(schedule) == []
    time.seconds += 2
    for name in ("slow", "quick"):
        schedule.ended(name)
    assert schedule.rest() == 3.0
    time.seconds += 3
    assert names(schedule) == ["quick"]  # five seconds behind its first turn, not behind its end
    time.seconds += 100
    assert set(names(schedule)) == {"slow", "quick"}


def test_a_turn_that_took_long_is_not_made_up_for(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(time, pipelines(tmp_path, quick="every: 5s"))
    schedule.began("quick")
    time.seconds += 60
    schedule.ended("quick")
    assert names(schedule) == ["quick"]
    schedule.began("quick")
    schedule.ended("quick")
    assert names(schedule) == []


def test_a_backlog_takes_turns_with_the_others(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(time, pipelines(tmp_path, a="every: 1s", b="every: 1s", full="every: 1s"))
    order = []
    for _ in range(12):
        name = names(schedule)[0]
        order.append(name)
        schedule.began(name)
        time.seconds += 1.5
        schedule.ended(name, has_rest=name == "full")
    assert order == ["a", "b", "full"] * 4


def test_one_that_fails_waits_longer_each_time(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(time, pipelines(tmp_path, bad="every: 1s", good="every: 1s"))
    pauses = []
    for _ in range(14):
        schedule.began("bad")
        pauses.append(schedule.failed("bad", ERROR))
        assert "bad" not in names(schedule)
        assert "good" in names(schedule)
        time.seconds += pauses[-1] + 0.001
        assert "bad" in names(schedule)
    assert all(0.5 * 2**number <= pause <= 2**number for number, pause in enumerate(pauses[:8]))
    assert max(pauses) <= LONGEST_PAUSE
    assert min(pauses[-4:]) >= LONGEST_PAUSE / 2
    schedule.began("bad")
    schedule.ended("bad")
    assert (schedule["bad"].failures, schedule["bad"].error) == (0, None)
    schedule.began("bad")
    assert schedule.failed("bad", ERROR) <= 1.0


def test_something_that_happens_wakes_a_pipeline(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(time, pipelines(tmp_path, slow="every: 1h", bad="every: 1h"))
    for name in ("slow", "bad"):
        schedule.began(name)
    schedule.note("slow")  # while it runs, and it may have looked before
    schedule.ended("slow")
    schedule.failed("bad", ERROR)
    assert names(schedule) == []  # at most once an hour
    assert schedule["slow"].has_news
    schedule.wake("slow")
    schedule.wake("bad")
    schedule.wake("nobody")
    assert set(names(schedule)) == {"slow", "bad"}
    assert schedule["slow"].has_news


def test_a_cron_schedule(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(
        time, pipelines(tmp_path, daily='cron: "30 6 * * *"', berlin='cron: "30 8 * * *", timezone: Europe/Berlin')
    )
    assert names(schedule) == []
    assert schedule.rest() == 1800.0
    time.seconds += 1801
    assert names(schedule) == ["daily"]
    schedule.began("daily")
    schedule.ended("daily", has_rest=True)
    assert names(schedule) == ["daily"]  # what was left is not left until tomorrow
    schedule.began("daily")
    schedule.ended("daily")
    assert names(schedule) == []
    time.seconds += 3600
    assert names(schedule) == ["berlin"]


def test_another_plan_is_taken_over(tmp_path: Path, time: Time) -> None:
    schedule = scheduled(time, pipelines(tmp_path, a="every: 1h", b="every: 1h", gone="every: 1h"))
    for name in ("a", "b", "gone"):
        schedule.began(name)
    schedule.ended("a")
    schedule.take(pipelines(tmp_path, a="every: 1h", b="every: 1s", new="every: 1h"))
    assert names(schedule) == ["new"]  # `a` keeps its time, and `b` still runs
    schedule.ended("b")
    schedule.ended("gone")
    assert "gone" not in schedule
    time.seconds += 1
    assert names(schedule) == ["new", "b"]
