"""Pipelines that run at once, each in a thread, in one JVM: `sluice run --workers 4`."""

from __future__ import annotations

import _thread
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.rules.protocol import KILL_POINTS
from framework.core.run import workers as module
from framework.core.run.events import BatchDone, Ended, Event
from framework.core.run.failures import raising
from framework.core.run.run import batches, never
from framework.core.run.workers import Workers, runs_of
from framework.core.spark import session
from framework.documents import make
from framework.plan import Pipeline
from tests.support.onward_topics import messages
from tests.support.project import Project, plan_for
from tests.support.selection import few
from tests.support.victims import PATIENCE, victim

SPECS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, part: int, price: double}}
---
pipeline: all_trades
from: {{topic: trades}}
into: {{table: {namespace}.trades}}
---
pipeline: newest
from: {{topic: trades}}
into: {{table: {namespace}.newest, write: upsert, keys: [part]}}
---
pipeline: versions
from: {{topic: trades}}
into: {{table: {namespace}.versions, write: history, keys: [part]}}
---
pipeline: totals
from: {{topic: trades}}
steps: [{{aggregate: {{by: [part], measures: {{trades: count(*), highest: max(price)}}}}}}]
into: {{table: {namespace}.totals, write: accumulate}}
---
pipeline: copy
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.copy}}
---
pipeline: other_copy
from: {{table: {namespace}.trades}}
steps: [{{filter: part < 5}}]
into: {{table: {namespace}.other_copy}}
---
pipeline: of_newest
from: {{table: {namespace}.newest}}
into: {{table: {namespace}.of_newest, write: upsert, keys: [part]}}
---
pipeline: by_price
from: {{tables: [{namespace}.newest]}}
steps: [{{sql: "select price, count(*) as parts from {namespace}.newest group by price"}}]
into: {{table: {namespace}.by_price, write: replace}}
"""
DEPENDENTS = {"copy": "all_trades", "other_copy": "all_trades", "of_newest": "newest", "by_price": "newest"}


def send(project: Project, count: int) -> None:
    numbers = [next(project.numbers) for _ in range(count)]
    values = [json.dumps({"id": number, "part": number % 7, "price": number % 100}).encode() for number in numbers]
    project.send([b"{" if number % 10 == 3 else value for number, value in zip(numbers, values, strict=True)])


def run(context: Context, count: int) -> list[Event]:
    with runs_of(context, count) as runs:
        return list(raising(runs(context.plan.pipelines, never)))


def rows(pipeline: Pipeline) -> list[str]:
    """The rows without what says which batch wrote them."""
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    kept = [field.name for field in table.schema().fields if not field.name.startswith(("_from_", "_measures"))]
    return sorted(map(str, table.scan(selected_fields=tuple(kept)).to_arrow().to_pylist()))


@pytest.fixture
def many(project: Project) -> Project:
    project.template = SPECS
    project.make_topic()
    return project


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
class TestThreads:
    def test_pipelines_at_once_make_the_rows_that_they_make_alone(self, many: Project) -> None:
        """All ways to write, tables that others read meanwhile, and two readers of the changes of one table."""
        alone, together = many.context(), None
        for _ in range(3):
            send(many, 70)
            run(alone, 1)
            namespace, many.namespace = many.namespace, f"{many.namespace}_together"
            together = together or many.context()
            events = run(together, 4)
            many.namespace = namespace
            ends = [event.pipeline.name for event in events if isinstance(event, Ended)]
            assert sorted(ends) == sorted(pipeline.name for pipeline in alone.plan.pipelines)
            assert all(ends.index(table) < ends.index(reader) for reader, table in DEPENDENTS.items())
        assert together is not None
        for own, other in zip(alone.plan.pipelines, together.plan.pipelines, strict=True):
            assert rows(own) == rows(other), own.name
        many.assert_exactly_once()

    def test_two_threads_run_one_pipeline(self, project: Project) -> None:
        project.more = "batch: {rows: 25}"
        project.make_topic()
        project.send_good(150, bad_every=10)
        context = project.context()
        with ThreadPoolExecutor(2) as pool:
            contexts = [context.sibling(), context.sibling()]
            both = pool.map(lambda sibling: len(list(batches(sibling, sibling.plan.pipelines[0]))), contexts)
        assert sum(both) >= 6
        project.assert_exactly_once()
        project.send_good(1)
        project.run()
        assert project.branches() == []

    @pytest.mark.parametrize("point", few(KILL_POINTS, "checked", "published"))
    def test_killed_while_two_threads_work(self, many: Project, point: str) -> None:
        send(many, 40)
        context = many.context()
        run(context, 2)
        send(many, 40)
        with victim(many, point, signal.SIGKILL, "all:2") as process:
            process.wait(PATIENCE)
        send(many, 10)
        run(context, 2)
        many.assert_exactly_once()
        assert many.branches() == []
        assert_they_agree(context)

    def test_one_jvm_dies_under_two_threads(self, many: Project) -> None:
        """Each of the two says that Spark has ended, and the pipelines behind them run in another JVM."""
        send(many, 40)
        with victim(many, "staged", cast(Any, SimpleNamespace(name="JVM")), "all:2") as process:
            output, _ = process.communicate(timeout=PATIENCE)
        assert "spark-ended" in output
        assert output.endswith("ended\n")
        context = many.context()
        run(context, 2)
        many.assert_exactly_once()
        assert_they_agree(context)

    def test_left_in_the_middle(self, many: Project) -> None:
        """Each run ends behind its commit, and no thread stays."""
        many.template = many.template.replace("pipeline: all_trades\n", "pipeline: all_trades\nbatch: {{rows: 5}}\n")
        send(many, 60)
        context = many.context()
        with runs_of(context, 2) as runs:
            events = runs(context.plan.pipelines, never)
            assert any(isinstance(event, BatchDone) for event in events)
            cast(Any, events).close()
        assert not any(thread.name.startswith("worker ") for thread in threading.enumerate())
        assert many.branches() == []
        run(context, 2)
        many.assert_exactly_once()


def assert_they_agree(context: Context) -> None:
    """Checks that the tables that are computed from `trades`, or like it, have the same messages."""
    by_name = {pipeline.name: pipeline for pipeline in context.plan.pipelines}
    assert rows(by_name["copy"]) == rows(by_name["all_trades"])
    assert rows(by_name["of_newest"]) == rows(by_name["newest"])
    trades = table_state.table(by_name["all_trades"].table.catalog, by_name["all_trades"].table.identifier)
    totals = table_state.table(by_name["totals"].table.catalog, by_name["totals"].table.identifier)
    assert trades is not None and totals is not None
    assert sum(totals.scan().to_arrow()["trades"].to_pylist()) == trades.scan().count()


Runs = Callable[[Any, Pipeline, Callable[[], bool]], Iterator[Event]]


def pipeline(name: str, *reads: str) -> Pipeline:
    return cast(Pipeline, SimpleNamespace(name=name, made_of=frozenset(reads)))


def threads(monkeypatch: pytest.MonkeyPatch, run_one: Runs, count: int = 2) -> Workers:
    monkeypatch.setattr(module, "run", run_one)  # the order of runs alone: without Spark
    context = SimpleNamespace(schemas=None, sibling=lambda _schemas: SimpleNamespace(schemas=None, stop=lambda: None))
    return Workers(cast(Context, context), count)


def test_pipelines_that_do_not_read_each_other_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    def run_one(_context: Any, one: Pipeline, _stopped: Callable[[], bool]) -> Iterator[Event]:
        if one.name != "last":
            both.wait(10)
        yield Ended(one)

    workers = threads(monkeypatch, run_one)
    pipelines = [pipeline("last", "first", "second"), pipeline("first"), pipeline("second", "not one of them")]
    names = [event.pipeline.name for event in workers.run(pipelines)]
    assert names[-1] == "last"
    assert sorted(names) == ["first", "last", "second"]
    assert [event.pipeline.name for event in workers.run([pipelines[0]])] == ["last"]
    workers.end()


def test_a_defect_in_a_thread_is_raised_where_events_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def run_one(_context: Any, one: Pipeline, stopped: Callable[[], bool]) -> Iterator[Event]:
        if one.name == "broken":
            raise ZeroDivisionError
        while not stopped():
            yield Ended(one)
        ended.append(one.name)

    workers = threads(monkeypatch, run_one)
    with pytest.raises(ZeroDivisionError):
        list(workers.run([pipeline("endless"), pipeline("broken")]))
    assert ended == ["endless"]
    workers.end()


def test_nothing_begins_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()

    def run_one(_context: Any, one: Pipeline, _stopped: Callable[[], bool]) -> Iterator[Event]:
        stop.set()
        yield Ended(one)

    workers = threads(monkeypatch, run_one, 1)
    assert len(list(workers.run([pipeline("first"), pipeline("second", "first")], stop.is_set))) == 1
    workers.end()


def test_threads_that_are_left_end_also_where_nobody_reads_their_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_one(_context: Any, one: Pipeline, stopped: Callable[[], bool]) -> Iterator[Event]:
        while not stopped():
            yield Ended(one)

    workers = threads(monkeypatch, run_one)
    events = workers.run([pipeline("endless"), pipeline("other")])
    next(events)
    workers.end()
    assert not any(thread.name.startswith("worker ") for thread in threading.enumerate())
    cast(Any, events).close()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kills", [int(os.environ.get("KILLS", "5"))])
def test_a_ledger_of_kills_in_threads(many: Project, kills: int) -> None:
    """Appends, upserts, histories, totals, and rows that go on to a topic, whose repeats are known by their headers."""
    into = "into: {{table: {namespace}.trades}}\n"
    many.template = many.template.replace(into, f"{into}also: [{{{{topic: {{topic}}_on}}}}]\n")
    context = many.context()
    for number in range(kills):
        send(many, 30)
        point = KILL_POINTS[number * 7 % len(KILL_POINTS)]
        with victim(many, point, signal.SIGKILL, "all:3") as process:
            process.wait(PATIENCE)
        print(f"killed at {point}")
    send(many, 5)
    run(context, 3)
    many.assert_exactly_once()
    assert_they_agree(context)
    records = messages(many)
    places = {
        (headers["sluice-commit"], headers["sluice-row"]): (value["_kafka_partition"], value["_kafka_offset"])
        for _, value, headers in records
    }
    print(f"{len(many.rows())} rows, {len(records)} messages")
    assert sorted(places.values()) == sorted((row["_kafka_partition"], row["_kafka_offset"]) for row in many.rows())
    many.admin.delete_topics([f"{many.topic}_on"])


def test_the_second_ctrl_c_waits_for_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    batch_ends = threading.Event()

    def run_one(_context: Any, one: Pipeline, _stopped: Callable[[], bool]) -> Iterator[Event]:
        yield Ended(one)
        _thread.interrupt_main()
        batch_ends.wait(30)

    workers = threads(monkeypatch, run_one, 1)
    with pytest.raises(KeyboardInterrupt):
        list(workers.run([pipeline("slow")]))
    assert not batch_ends.is_set()
    batch_ends.set()
    workers.end()


class TestSiblings:
    """Contexts of threads beside each other, with sessions that are made up: what counts is when one is made."""

    @pytest.fixture
    def host(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
        jvms = iter(range(10))
        made_up = {
            "refuse_older": lambda _: None,
            "stop": lambda _: None,
            "leave": lambda _: None,
            "sibling": lambda spark, _: f"beside {spark}",
            "is_gone": lambda spark: str(spark).endswith("0"),
        }
        for name, function in made_up.items():
            monkeypatch.setattr(session, name, function)  # a JVM that ends at a certain moment under a thread that does nothing
        plan = plan_for(tmp_path, "127.0.0.1:1")
        return Context(plan, spark=lambda: cast(Any, f"jvm {next(jvms)}"), warm=False)

    def test_a_thread_that_did_nothing_while_the_jvm_ended_begins_another_session(self, host: Context) -> None:
        busy, idle = host.sibling(), host.sibling()
        assert [str(busy.spark), str(idle.spark)] == ["beside jvm 0", "beside jvm 0"]
        busy.forget_what_failed()
        assert idle.has_lost_spark()
        assert [str(busy.spark), str(idle.spark)] == ["beside jvm 1", "beside jvm 1"]
        assert not idle.has_lost_spark()
        idle.forget_what_failed()
        assert str(busy.spark) == "beside jvm 1"

    def test_few_rows_make_no_jvm_slow_that_stays(self, host: Context) -> None:
        host.sibling().expect(100)
        assert host.rows is None

    def test_threads_share_what_the_registry_said(self, host: Context) -> None:
        assert host.sibling().schemas is host.schemas


def test_a_plan_is_made_again_by_two_threads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, both, parts = plan_for(tmp_path, "127.0.0.1:1"), threading.Barrier(2), make._parts

    def slow_parts(*arguments: Any) -> Any:
        both.wait(10)
        return parts(*arguments)

    monkeypatch.setattr(make, "_parts", slow_parts)  # else one of them could be done before the other begins
    assert plan.again is not None
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(plan.again, [{}, {}])
    assert first.plan.pipelines == second.plan.pipelines
