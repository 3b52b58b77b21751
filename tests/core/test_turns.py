"""The turns of a stream: whose it is, and what the end of one means for the others."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framework.base.errors import BatchError, CatalogAway, RefusedError, SluiceError
from framework.core.rules.journal import FailedRun, RunRecord
from framework.core.run.crew import Done
from framework.core.run.events import BatchDone, LeftOut
from framework.core.stream.events import Away, Back, Changed, Recovered, Rests, StandsBy, StreamEvent, TookOver
from framework.core.stream.marks import PipelineRecords, SourceMarks
from framework.core.stream.schedule import Schedule
from framework.core.stream.state import Memory
from framework.core.stream.turns import Turns
from framework.documents.make import make
from framework.plan import Pipeline
from tests.support.stream_specs import FROM_TOPIC, SOURCES

FROM_TABLE = FROM_TOPIC.replace("{topic: trades}", "{table: streams.first}")
CATALOG = CatalogAway("catalog-unreachable", "the catalog `lake` does not answer", "start it", "the catalog `lake`")
OTHER = BatchError("broken", "3 rows are broken", "mend it")


class Trial:
    """The turns of some pipelines, by a clock that a test turns."""

    def __init__(self, folder: Path, **runs: str) -> None:
        self.folder, self.seconds = folder, 1000.0
        self.started = datetime(2026, 3, 1, 6, 0, tzinfo=timezone.utc)
        self.turns = Turns(self.planned(**runs))
        self.turns.schedule = Schedule(
            self.turns.pipelines(), lambda: self.seconds, lambda: self.started + timedelta(seconds=self.seconds), random.Random(1)
        )
        self.notes()

    def planned(self, *, above: str = "", **runs: str) -> list[Pipeline]:
        (self.folder / "specs").mkdir(exist_ok=True)
        texts = ((FROM_TABLE if name == "copy" else FROM_TOPIC) % (name, run, name) for name, run in runs.items())
        (self.folder / "specs" / "main.yaml").write_text(SOURCES + above + "".join(texts))
        return list(make(self.folder / "specs").pipelines)

    def notes(self, owners: dict[str, str] | None = None, **records: RunRecord) -> list[StreamEvent]:
        """Others have noted something of pipelines; of those that are not named, nothing."""
        names = [pipeline.name for pipeline in self.turns.pipelines()]
        return list(self.turns.noted(PipelineRecords({name: records.get(name, RunRecord()) for name in names}, owners or {})))

    def sees(self, mark: int) -> list[StreamEvent]:
        names = [pipeline.name for pipeline in self.turns.pipelines() if pipeline.topics]
        return list(self.turns.saw(SourceMarks("cluster main", dict.fromkeys(names, mark))))

    def ready(self) -> list[str]:
        return [pipeline.name for pipeline in self.turns.ready()]

    def begin(self, name: str) -> None:
        self.turns.begin(self.turns.schedule[name].pipeline)

    def publish(self, name: str, waiting: int = 0) -> list[StreamEvent]:
        batch = SimpleNamespace(waiting=waiting, read=10, seconds=0.1)
        return list(self.turns.took(BatchDone(self.turns.schedule[name].pipeline, cast(Any, batch))))

    def end(self, name: str, error: SluiceError | None = None) -> list[StreamEvent]:
        if error is not None:
            self.turns.failed(self.turns.schedule[name].pipeline, error)
        return list(self.turns.ended(Done(name)))

    def run(self, name: str, error: SluiceError | None = None) -> list[StreamEvent]:
        self.begin(name)
        return self.end(name, error)

    def state(self, name: str) -> str:
        return self.turns.health()[name].state


def kinds(events: Iterable[StreamEvent]) -> list[type]:
    return [type(event) for event in events]


def test_a_pipeline_has_a_turn_where_something_is_new(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", copy="every: 1s")
    assert trial.ready() == []  # nobody has looked yet
    trial.sees(1)
    assert trial.ready() == ["first"]
    trial.begin("first")
    trial.sees(2)  # while its turn is under way
    trial.publish("first")
    assert trial.ready() == []  # the first turn makes the table
    trial.end("first")
    assert trial.ready() == ["copy"]
    trial.seconds += 1
    assert trial.ready() == ["copy", "first"]
    trial.run("first")
    trial.run("copy")
    trial.seconds += 10
    assert trial.ready() == []


def test_what_is_left_has_the_next_turn(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1h")
    trial.sees(1)
    trial.begin("first")
    trial.publish("first", waiting=50)
    trial.end("first")
    assert (trial.ready(), trial.state("first")) == (["first"], "has a backlog")


def test_one_with_a_cron_schedule_always_has_its_turn(tmp_path: Path) -> None:
    """A look may come too late, or meet a cluster that does not answer: then its messages would wait until tomorrow."""
    trial = Trial(tmp_path, first='cron: "30 6 * * *"', copy='cron: "30 6 * * *"')
    trial.sees(1)
    assert trial.ready() == []
    trial.seconds += 1801
    assert trial.ready() == ["first"]  # the other one reads its table
    trial.begin("first")
    assert trial.ready() == []
    trial.end("first")
    assert trial.ready() == ["copy"]
    trial.run("copy")
    trial.seconds += 10
    assert trial.ready() == []


def test_the_time_of_a_cron_schedule_waits_for_the_end_of_a_pause(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first='cron: "30 6 * * *"')
    trial.notes(first=RunRecord(paused="2026-03-01T06:10:00Z"))
    trial.seconds += 1801
    assert trial.ready() == []
    trial.notes()
    assert trial.ready() == ["first"]


def test_an_outage_is_told_once_and_over_with_the_first_batch(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", second="every: 1s")
    trial.sees(1)
    assert kinds(trial.run("first", CATALOG)) == [Away]
    assert kinds(trial.run("second", CATALOG)) == []
    assert trial.state("second") == "waits for another system"
    trial.seconds += 11
    assert trial.ready() == ["first"]
    trial.begin("first")
    assert kinds(trial.publish("first", waiting=1_000_000)) == [Back]
    assert trial.ready() == ["second"]  # which does not wait for the end of a long turn


def test_those_that_fail_leave_a_thread_to_the_others(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", second="every: 1s", third="every: 1s", fourth="every: 1s")
    trial.sees(1)
    for name in ("first", "second", "third"):
        trial.run(name, OTHER)
    trial.seconds += 300
    assert [pipeline.name for pipeline in trial.turns.ready(1)] == ["fourth", "first"]
    assert [pipeline.name for pipeline in trial.turns.ready(2)] == ["fourth", "first", "second"]
    trial.begin("first")
    assert [pipeline.name for pipeline in trial.turns.ready(1)] == ["fourth"]
    trial.publish("first")
    assert [pipeline.name for pipeline in trial.turns.ready(1)] == ["fourth", "second"]


def test_much_that_waits_does_not_wait_for_its_time(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1h", second='cron: "30 8 * * *"', third="every: 1h")
    trial.sees(1)
    for name in ("first", "second"):
        trial.run(name)
    trial.run("third", OTHER)
    assert trial.ready() == []
    trial.turns.filled(("first", "second", "third", "nobody"))
    assert set(trial.ready()) == {"first", "second"}  # and the third one rests after its failure


def test_who_is_paused_does_not_hold_the_others(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", second="every: 1s")
    trial.sees(1)
    trial.run("first", CATALOG)
    trial.run("second", CATALOG)
    trial.seconds += 11
    trial.begin("first")
    assert trial.notes(first=RunRecord(paused="2026-03-01T06:10:00Z")) == []  # its turn is under way
    assert kinds(trial.end("first", CATALOG)) == [LeftOut]
    assert trial.ready() == ["second"]
    assert (trial.state("first"), trial.state("second")) == ("is paused", "waits for another system")


def test_a_failure_is_told_once_whatever_its_numbers(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s")
    trial.sees(1)
    assert kinds(trial.run("first", OTHER)) == [Rests]
    trial.seconds += 300
    assert kinds(trial.run("first", BatchError("broken", "4 rows are broken", "mend it"))) == []
    trial.seconds += 300
    assert kinds(trial.run("first")) == [Recovered]


def test_a_corrected_spec_is_tried_at_once(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", second="every: 1s")
    trial.sees(1)
    for _ in range(9):
        trial.run("first", OTHER)
    assert trial.ready() == ["second"]
    same_specs = trial.planned(first="every: 1s", second="every: 1s", above="\n\n")
    assert same_specs[0].where != trial.turns.pipelines()[0].where
    assert trial.turns.changed(same_specs) == Changed()
    assert trial.ready() == ["second"]
    corrected = [replace(same_specs[0], doc="Corrected."), same_specs[1]]
    assert trial.turns.changed(corrected) == Changed(changed=("first",))
    assert set(trial.ready()) == {"first", "second"}


def test_an_outage_of_what_nobody_reads_any_more_is_over(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", copy="every: 1s")
    away = CatalogAway("kafka-unreachable", "Kafka does not answer", "start it", "Kafka")
    assert kinds(trial.turns.saw(SourceMarks("cluster main", {}, away))) == [Away]
    trial.turns.changed([pipeline for pipeline in trial.turns.pipelines() if pipeline.name == "copy"])
    assert list(trial.turns.outages) == []


@pytest.mark.parametrize("moved", [True, False])
def test_what_a_person_does_wakes_a_pipeline(tmp_path: Path, moved: bool) -> None:
    trial = Trial(tmp_path, first="every: 1h")
    refused = RefusedError("offsets-gone", "messages are gone", "accept it")
    trial.sees(1)
    trial.run("first", refused)
    trial.notes(first=RunRecord(failed=FailedRun.from_error(refused, "2026-03-01T06:00:00Z")))
    for _ in range(9):
        trial.run("first", refused)
    assert trial.ready() == []
    trial.notes(first=RunRecord(moved="2026-03-01T06:10:00Z") if moved else RunRecord())
    assert trial.ready() == ["first"]


def test_a_move_while_a_turn_is_under_way_is_not_missed(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1h")
    trial.sees(1)
    trial.begin("first")
    trial.notes(first=RunRecord(moved="2026-03-01T06:10:00Z"))
    trial.end("first")
    assert trial.ready() == ["first"]


def test_what_another_process_streams_is_left_to_it(tmp_path: Path) -> None:
    trial = Trial(tmp_path, first="every: 1s", second="every: 1s")
    trial.sees(1)
    owner = "process 7 since 2026-03-01T06:00:00Z"
    assert trial.notes({"first": owner}) == [StandsBy(("first",), owner)]
    assert trial.notes({"first": owner}) == []
    assert (trial.ready(), trial.state("first")) == (["second"], "stands by")
    assert [pipeline.name for pipeline in trial.turns.own()] == ["second"]
    assert trial.notes() == [TookOver(("first",))]
    assert set(trial.ready()) == {"first", "second"}


@pytest.mark.parametrize(("fixed", "for_one"), [(0.05, 5e-6), (0.15, 5e-6), (2.0, 5e-6), (0.1, 1e-3), (0.0, 1e-7)])
def test_batches_take_about_a_second(fixed: float, for_one: float) -> None:
    """Or three times what the smallest one takes: then smaller ones would load less and end hardly earlier."""
    memory, planned = Memory(), cast(Pipeline, SimpleNamespace(batch_rows=1_000_000))
    for _ in range(20):
        size = memory.begin(planned)
        seconds = fixed + for_one * size
        memory.took(cast(Any, SimpleNamespace(read=size, waiting=10**7, seconds=seconds)), 1.0)
    assert size in (1_000, 1_000_000) or 0.8 * max(1.0, 3 * fixed) < seconds < 1.25 * max(1.0, 3 * fixed)
    assert size >= 1_000 and seconds < 1.25 * max(1.0, 3 * fixed, fixed + for_one * 1_000)


def test_a_batch_that_was_not_full_says_nothing_of_its_size() -> None:
    memory = Memory()
    size = memory.begin(cast(Pipeline, SimpleNamespace(batch_rows=1_000_000)))
    memory.took(cast(Any, SimpleNamespace(read=size // 2, waiting=0, seconds=30.0)), 1.0)
    assert memory.size == size
