"""The numbers of runs, and who is told of runs: Sluice's own metrics and watchers, and the toys `tests/toys/metrics/stragglers.py` and
`tests/toys/watchers/diary.py`, which nothing else names."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from framework.core.publish.batch import Batch
from framework.core.rows.counts import BatchCounts, UnmetExpectation
from framework.core.rules.work import Work
from framework.core.run.events import BatchDone, Began, Ended, Event
from framework.host.assets import results
from framework.host.assets.told import Told
from framework.host.cli.run import line
from framework.host.watchers import WATCHERS, with_watchers
from framework.operations.metrics import METRICS, in_words, lineage_of_work, metrics, values_for_dagster, values_of_work
from framework.operations.observe.status import status_by_catalog
from framework.plan import Pipeline
from tests import toys
from tests.support.project import plan_for

SPEC = """
topic: orders
value: json
columns: {{id: int}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: {namespace}.orders}}
"""


@pytest.fixture(autouse=True)
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return plan_for(tmp_path, "127.0.0.1:1", SPEC.format(namespace="shop")).pipelines[0]


WORK = Work(
    batches=1, read=1200, rows=1000, filtered=150, files=2, bytes=4096, bad={"undecodable": 40, "too-old": 10},
    seconds={"start": 4.0, "stage": 1.5, "publish": 0.25}, lasted={"2.5": 1},
)  # fmt: skip


def batch(pipeline: Pipeline, work: Work = WORK, unmet: tuple[UnmetExpectation, ...] = ()) -> BatchDone:
    counted = BatchCounts(read=1200, rows=1000, filtered=150, bad=50, unmet=unmet, carried=None, too_large=0)
    return BatchDone(
        pipeline, Batch(pipeline="orders", number=1, read=1200, counted=counted, waiting=7, snapshot=1, attempt="a1", work=work)
    )


def test_each_metric_is_declared() -> None:
    for name, metric in metrics().items():
        assert re.fullmatch("[a-z]+(_[a-z]+)*", name)
        assert metric.doc.endswith(".") and METRICS.load(name).__doc__
        assert metric.label or "{label}" not in metric.dagster
        if metric.unit in ("second", "byte"):
            assert name.endswith(f"_{metric.unit}s"), "Prometheus' names have their units"


def test_a_metric_is_in_all_that_shows_numbers(pipeline: Pipeline) -> None:
    event, told = batch(pipeline), Told()
    told.add(event)
    told.add(event)
    assert "200 stragglers" in line(event)
    assert results.numbers(status_by_catalog(pipeline), told.work)["stragglers"] == 400
    assert lineage_of_work(told.work)["size"] == 400
    assert values_of_work(told.work)["stragglers"] == 400


def test_the_numbers_of_batches_in_words_and_in_dagster(pipeline: Pipeline) -> None:
    unmet = (UnmetExpectation(name="positive", rows=2),)
    keyed = replace(WORK, changed={"new": 900, "changed": 100, "deleted": 0}, unmet={"positive": 2})
    event = batch(pipeline, keyed, unmet)
    assert list(in_words(event.batch)) == [
        "1,000 rows", "900 new", "100 changed", "50 bad", "150 filtered", "200 stragglers", "2 not as `positive` expects",
    ]  # fmt: skip
    assert values_for_dagster(values_of_work(keyed + keyed)) == {
        "batches": 2, "rows": 2000, "new": 1800, "changed": 200, "deleted": 0, "bad_rows": 100, "filtered": 300, "unmet_positive": 4,
        "seconds": 3.5, "seconds_start": 8, "seconds_stage": 3, "seconds_publish": 0.5, "stragglers": 400, "read_messages": 2400,
        "repeated_batches": 0, "written_bytes": 8192, "written_files": 4, "read_bytes": 0, "written_objects": 0,
    }  # fmt: skip


def diary() -> list[str]:
    lines: list[str] = WATCHERS.load("diary").LINES
    return lines


def test_a_watcher_is_told_each_event_before_the_caller(pipeline: Pipeline) -> None:
    diary().clear()
    events = with_watchers([Began(pipeline, 1), batch(pipeline), Ended(pipeline)])
    for number, _ in enumerate(events, start=1):
        assert len(diary()) == number
    assert diary() == ["Began orders", "BatchDone orders", "Ended orders"]


def test_a_run_that_is_left_has_an_end_for_watchers(pipeline: Pipeline) -> None:
    def interrupted() -> Iterator[Event]:
        yield Began(pipeline, 1)
        raise KeyboardInterrupt

    diary().clear()
    events = with_watchers([Began(pipeline, 1), batch(pipeline), Ended(pipeline)])
    assert isinstance(next(events), Began)
    events.close()  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        list(with_watchers(interrupted()))
    assert diary() == ["Began orders", "Ended orders"] * 2


def test_a_watcher_that_fails_stops_no_run(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no place left")

    # A watcher of Sluice's own must not fail: the toy stands for one with a defect.
    monkeypatch.setattr(WATCHERS.load("diary"), "watcher", lambda: broken)
    with caplog.at_level(logging.WARNING, "sluice.watchers"):
        assert len(list(with_watchers([Began(pipeline, 1), Ended(pipeline)]))) == 2
    assert "a watcher of runs failed over Began: no place left" in caplog.text
