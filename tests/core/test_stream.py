"""A stream of several pipelines: rows land soon, nobody holds up the others, and what changes under it is taken over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from framework.base.errors import SpecError
from framework.core.iceberg import table_state
from framework.core.rules import journal
from framework.core.run.events import BatchDone, LeftOut
from framework.core.stream import stream as streams, turns
from framework.core.stream.events import Away, Back, Changed, NotTaken, Recovered, Rests, StreamEvent
from framework.core.stream.stream import Stream
from framework.core.stream.watch import Changes
from framework.machine.services import kafka
from framework.plan import Pipeline, Plan
from tests.support.project import Project
from tests.support.stream_specs import MORE
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Told = TypeVar("Told")
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


def all_of(plan: Plan) -> Sequence[Pipeline]:
    return plan.pipelines


class Running:
    """A stream in a thread, and all that it has told."""

    def __init__(self, project: Project, changes: Changes, workers: int) -> None:
        self.context = project.context()
        self.events: list[StreamEvent] = []
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._stream = Stream(self.context, all_of, workers, changes)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for event in self._stream.events(self._stop.is_set):
                self.events.append(event)
        except BaseException as error:
            self.error = error

    def told(self, type_: type[Told]) -> list[Told]:
        return [event for event in self.events if isinstance(event, type_)]

    def batches(self, name: str) -> list[BatchDone]:
        return [event for event in self.events if isinstance(event, BatchDone) and event.pipeline.name == name]

    def failures(self, name: str) -> int:
        """How often a pipeline failed in a row."""
        return self._stream.health().pipelines[name].failures

    def state(self, name: str) -> str:
        return self._stream.health().pipelines[name].state

    def rows(self, name: str) -> int:
        return sum(event.batch.rows for event in self.batches(name))

    def wait_for(self, **counts: int) -> None:
        """Waits until the tables have so many rows of this stream."""

        def are_there() -> bool:
            return self.error is not None or all(self.rows(name) == count for name, count in counts.items())

        until(are_there, f"the rows do not land: {counts}", 120)
        assert self.error is None

    def end(self) -> float:
        began = time.monotonic()
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        return time.monotonic() - began


@contextmanager
def stream(project: Project, changes: Changes = lambda: None, workers: int = 2) -> Iterator[Running]:
    running = Running(project, changes, workers)
    try:
        yield running
    finally:
        running.end()
    assert running.error is None


def ids(project: Project, table: str) -> list[int]:
    """Returns the ids of a table's rows, which are the numbers of messages."""
    found = table_state.table(project.pipeline.table.catalog, f"{project.namespace}.{table}")
    return [] if found is None else sorted(found.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def test_rows_land_soon_in_all_tables(project: Project) -> None:
    project.more = MORE.format(namespace=project.namespace)
    project.make_topic()
    project.send_good(30)
    with stream(project) as running:
        running.wait_for(copy=30)
        for count in range(3):
            began = time.monotonic()
            project.send_good(10)
            running.wait_for(trades=40 + 10 * count, newest=40 + 10 * count)
            assert time.monotonic() - began < 15
        running.wait_for(copy=60)
        assert running.end() < 10
    assert [ids(project, name) for name in ("trades", "newest", "copy")] == [list(range(60))] * 3


def test_a_backlog_takes_turns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (streams, turns):
        monkeypatch.setattr(module, "TURN", 0.1)  # in a second, a pipeline loads all of it
    project.more = MORE.format(namespace=project.namespace).replace("newest, write: upsert, keys: [id]", "newest")
    project.make_topic()
    for _ in range(5):
        project.send_good(50_000)
    with stream(project, workers=1) as running:
        running.wait_for(trades=250_000, newest=250_000)
        names = [event.pipeline.name for event in running.told(BatchDone) if event.pipeline.name != "copy"]
        assert len(names) >= 6  # of at most 100,000 rows at first
        first_ends = len(names) - 1 - names[::-1].index(names[0])
        assert names.index("trades" if names[0] == "newest" else "newest") < first_ends
    assert ids(project, "trades") == ids(project, "newest") == list(range(250_000))


def test_one_that_fails_waits_and_the_others_go_on(project: Project) -> None:
    two_pipelines = MORE.format(namespace=project.namespace).partition("---\npipeline: copy")[0]
    project.more = f"bad_rows: stop\n{two_pipelines}"
    project.make_topic()
    project.send_good(5)
    project.send([b"not json"], partition=0)
    with stream(project) as running:
        running.wait_for(newest=5)
        until(lambda: bool(running.told(Rests)), "the failure is not told", 30)
        project.send_good(5)
        running.wait_for(newest=10)
        until(lambda: running.failures("trades") >= 3, "it is not tried again", 30)
        (rest,) = running.told(Rests)
        assert rest.pipeline.name == "trades" and rest.error.code == "bad-rows"
    assert ids(project, "trades") == []


def test_a_pause_of_another_process_counts_at_once(project: Project) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(5)
    with stream(project) as running:
        running.wait_for(trades=5)
        journal.pause(project.pipeline.journal_name)
        project.send_good(5)
        until(lambda: bool(running.told(LeftOut)), "the pause is not told", 30)
        until(lambda: running.state("trades") == "is paused", "it is not paused", 30)
        assert running.rows("trades") == 5 and len(running.told(LeftOut)) == 1
        journal.resume(project.pipeline.journal_name)
        running.wait_for(trades=10)
        until(lambda: bool(running.told(Recovered)), "it is not told that it goes on", 30)
        assert [event.pipeline.name for event in running.told(Recovered)] == ["trades"]


def test_changed_specs_are_taken_over_between_batches(project: Project) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(5)
    answers: list[Plan | SpecError] = []
    with stream(project, lambda: answers.pop() if answers else None) as running:
        running.wait_for(trades=5)
        answers.append(SpecError([]))
        until(lambda: bool(running.told(NotTaken)), "the problems are not told", 30)
        project.more = MORE.format(namespace=project.namespace)
        project.template = project.template.replace("label: LARGE", "label: HUGE")
        answers.append(project.plan)
        until(lambda: bool(running.told(Changed)), "the change is not told", 30)
        assert running.told(Changed) == [Changed(new=("copy", "newest"), changed=("trades",), gone=())]
        running.wait_for(newest=5)
        project.send([b'{"id": 1000, "price": 950}'])
        running.wait_for(newest=6, trades=6)
    assert [row["size"] for row in project.rows() if row["id"] == 1000] == ["HUGE"]


def test_a_topic_that_is_missing_is_said_once(project: Project) -> None:
    project.more = MORE.format(namespace=project.namespace)
    with stream(project) as running:
        until(lambda: min(running.failures(name) for name in ("trades", "newest")) >= 3, "it is not tried again", 60)
        missing_names = [rest.pipeline.name for rest in running.told(Rests) if rest.error.code == "no-topic"]
        assert sorted(missing_names) == ["newest", "trades"]
        project.make_topic()
        project.send_good(5)
        running.wait_for(trades=5, newest=5)
        running.wait_for(copy=5)
        until(lambda: len(running.told(Recovered)) == 3, "it is not told that all go on", 30)


@pytest.mark.long
def test_a_kafka_that_dies_is_told_once_and_its_return_too(tmp_path: Path, lake: Path, spark: SparkSession) -> None:
    home = tmp_path / "own"
    with ExitStack() as closing:
        with kafka.running(home) as address:
            project = Project(tmp_path, lake, address, spark)
            project.more = MORE.format(namespace=project.namespace)
            project.make_topic()
            project.send_good(30)
            running = closing.enter_context(stream(project))
            running.wait_for(trades=30, newest=30, copy=30)
        until(lambda: bool(running.told(Away)), "the outage is not told", 60)
        until(lambda: running.state("newest") == "waits for another system", "it does not wait", 60)
        with kafka.running(home, int(address.rpartition(":")[2])):
            until(lambda: bool(running.told(Back)), "the end of the outage is not told", 60)
            project.send_good(30)
            running.wait_for(trades=60, newest=60, copy=60)
            closing.close()
            assert (len(running.told(Away)), len(running.told(Back)), running.told(Rests)) == (1, 1, [])
            assert ids(project, "trades") == ids(project, "newest") == ids(project, "copy") == list(range(60))
            project.close()
