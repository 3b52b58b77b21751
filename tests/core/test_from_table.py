"""`from: {table: …}`: what a table's commits add, change and delete goes on into other tables, whatever happens meanwhile."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from framework.core.context.context import Context
from framework.core.iceberg.at import OfBatch
from framework.core.maintain import maintain
from framework.core.publish.batch import source_backlog
from framework.core.rules.protocol import KILL_POINTS
from framework.operations.undo import accept, rollback
from framework.plan import Pipeline
from tests.support.project import Project
from tests.support.rebuilds import rebuilt
from tests.support.runs import errors

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CUSTOMERS = """
topic: customers
kafka_name: {topic}
key: {{format: long, as: id}}
value: json
columns: {{name: string, city: string}}
---
pipeline: customers
from: {{topic: customers}}
into: {{table: {namespace}.customers, write: upsert, keys: [id], deletes: tombstones}}
"""
READERS = """---
pipeline: open
from: {{table: {namespace}.customers}}
steps:
  - filter: city <> 'closed'
  - derive: {{label: "upper(city)"}}
into: {{table: {namespace}.open, write: upsert, keys: [id]}}
---
pipeline: by_city
from: {{table: {namespace}.customers}}
into: {{table: {namespace}.by_city, write: upsert, keys: [city, id]}}
---
pipeline: all_states
from: {{table: {namespace}.customers}}
into: {{table: {namespace}.all_states, deletes: ignore}}
---
pipeline: past
from: {{table: {namespace}.customers}}
into: {{table: {namespace}.past, write: history, keys: [id]}}
---
pipeline: chained
from: {{table: {namespace}.open}}
into: {{table: {namespace}.chained, write: upsert, keys: [id]}}
"""
_CITIES = ("Rome", "Oslo", "closed", "Bonn")


class _Shop:
    """Customers, and the tables that are computed from their table."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.template = CUSTOMERS + READERS
        project.make_topic(1)
        self.customers: dict[int, tuple[str, str]] = {}
        self.states: Counter[tuple[int, str, str]] = Counter()  # the rows that `all_states` must have
        self.versions = 0
        self.touched: set[int] = set()  # ids that changed since the readers ran
        self.context = Context(project.plan, spark=lambda: project.spark)

    def pipelines(self, *names: str) -> list[Pipeline]:
        return [pipeline for pipeline in self.context.plan.pipelines if not names or pipeline.name in names]

    def run(self, *names: str) -> None:
        assert errors(self.context, self.pipelines(*names)) == []

    def change(self, changes: dict[int, tuple[str, str] | None]) -> None:
        """Makes one commit of the customers' table."""

        def value(row: tuple[str, str] | None) -> bytes | None:
            return None if row is None else json.dumps(dict(zip(("name", "city"), row, strict=True))).encode()

        self.project.produce({"key": id_.to_bytes(8, "big", signed=True), "value": value(row)} for id_, row in changes.items())
        self.run("customers")
        for id_, row in changes.items():
            if row is None:
                self.customers.pop(id_, None)
            else:
                self.customers[id_] = row
                self.versions += 1
        self.touched |= changes.keys()

    def follow(self) -> None:
        self.run("open", "by_city", "all_states", "past", "chained")
        self.states += Counter((id_, *self.customers[id_]) for id_ in self.touched & self.customers.keys())
        self.touched.clear()

    def compact(self) -> None:
        for pipeline in self.pipelines("customers", "open"):
            list(maintain.maintain(self.context, pipeline))

    def rows(self, table: str, columns: str, where: str = "true") -> Counter[tuple[Any, ...]]:
        name = f"lake.{self.project.namespace}.{table}"
        return Counter(tuple(row) for row in self.project.spark.sql(f"SELECT {columns} FROM {name} WHERE {where}").collect())

    def check(self) -> None:
        customers = Counter((id_, *row) for id_, row in self.customers.items())
        is_open = Counter(row for row in customers if row[2] != "closed")
        assert self.rows("customers", "id, name, city") == customers
        assert self.rows("open", "id, name, city") == is_open
        assert self.rows("open", "city, label") == Counter((row[2], row[2].upper()) for row in is_open)
        assert self.rows("by_city", "id, name, city") == customers
        assert self.rows("all_states", "id, name, city") == self.states
        assert self.rows("past", "id, name, city", "is_current") == customers
        assert self.rows("past", "count(*)") == Counter([(self.versions,)])
        assert self.rows("chained", "id, name, city") == is_open


@pytest.fixture
def shop(project: Project) -> _Shop:
    return _Shop(project)


@pytest.mark.long
def test_a_table_goes_on_into_other_tables(shop: _Shop) -> None:
    shop.change({1: ("Ada", "Rome"), 2: ("Bo", "closed"), 3: ("Cy", "Oslo"), 4: ("Di", "Oslo")})
    shop.follow()
    shop.change({1: ("Ada", "closed"), 2: ("Bo", "Rome"), 3: None, 5: ("Ed", "Rome")})
    shop.compact()
    shop.change({4: None, 5: ("Ed", "Bonn")})
    shop.follow()
    shop.check()


def test_a_compaction_is_no_news(log: _Log) -> None:
    for id_ in range(6):
        log.send(id_)
        assert log.run("lines") == []
    assert log.run("oslo") == []
    context = Context(log.project.plan, spark=lambda: log.project.spark)
    lines, oslo = (next(pipeline for pipeline in context.plan.pipelines if pipeline.name == name) for name in ("lines", "oslo"))
    assert any("into 1" in line for done in maintain.maintain(context, lines) for line in done.says)
    assert source_backlog(context, oslo).rows == 0
    log.send(7)
    assert log.run("lines", "oslo") == []
    assert log.ids("oslo") == [1, 3, 5, 7]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_to_the_table_goes_on(shop: _Shop, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(8):
        ids = chance.sample(range(12), chance.randint(1, 6))
        shop.change({id_: None if chance.random() < 0.3 else (f"n{number}", chance.choice(_CITIES)) for id_ in ids})
        if chance.random() < 0.3:
            shop.compact()
        if chance.random() < 0.7:
            shop.follow()
    shop.follow()
    shop.check()


@pytest.mark.long
def test_a_rollback_of_the_table_goes_on(shop: _Shop) -> None:
    followers = ("open", "by_city", "past", "chained")

    def check(customers: dict[int, tuple[str, str]]) -> None:
        shop.run(*followers)
        rows = Counter((id_, *row) for id_, row in customers.items())
        assert shop.rows("customers", "id, name, city") == rows
        assert shop.rows("by_city", "id, name, city") == rows
        assert shop.rows("past", "id, name, city", "is_current") == rows
        for table in ("open", "chained"):
            assert shop.rows(table, "id, name, city") == Counter(row for row in rows if row[2] != "closed")

    shop.change({1: ("Ada", "Rome"), 2: ("Bo", "closed"), 3: ("Cy", "Oslo")})
    before = dict(shop.customers)
    check(before)
    shop.change({1: ("Ada", "Bonn"), 2: ("Bo", "Rome"), 3: None, 4: ("Di", "Oslo")})
    check(shop.customers)
    (pipeline,) = shop.pipelines("customers")
    accept.move(shop.context, pipeline, rollback.judged(shop.context, pipeline, OfBatch(1)).moves)
    check(before)
    shop.run("customers")
    check(shop.customers)


LOG = """
topic: lines
kafka_name: {topic}
value: json
columns: {{id: bigint, city: string}}
---
pipeline: lines
from: {{topic: lines}}
into: {{table: {namespace}.lines}}
---
pipeline: oslo
from: {{table: {namespace}.lines}}
steps: [{{filter: city = 'Oslo'}}]
into: {{table: {namespace}.oslo}}
---
pipeline: last
from: {{table: {namespace}.lines}}
into: {{table: {namespace}.last, write: upsert, keys: [city]}}
"""


class _Log:
    """Lines that are only added, and the tables that are computed from them."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.template = LOG
        project.make_topic(1)

    def send(self, *ids: int) -> None:
        self.project.send((json.dumps({"id": id_, "city": _CITIES[id_ % 2]}).encode() for id_ in ids), partition=0)

    def run(self, *names: str, on_point: Any = None) -> list[str]:
        """Runs the pipelines, and returns the codes of the errors."""
        context = Context(self.project.plan, spark=lambda: self.project.spark, **({"reached": on_point} if on_point else {}))
        pipelines = [pipeline for pipeline in context.plan.pipelines if not names or pipeline.name in names]
        return [error.code for error in errors(context, pipelines)]

    def rebuild(self, name: str) -> None:
        pipeline = next(pipeline for pipeline in self.project.plan.pipelines if pipeline.name == name)
        context = Context(self.project.plan, spark=lambda: self.project.spark)
        rebuilt(context, pipeline)

    def ids(self, table: str) -> list[int]:
        rows = self.project.spark.sql(f"SELECT id FROM lake.{self.project.namespace}.{table} ORDER BY id").collect()
        return [row["id"] for row in rows]

    def java(self, table: str) -> Any:
        from framework.core.iceberg.lake import TableStore

        return TableStore(self.project.spark, self.project.plan.catalogs[0]).load(f"{self.project.namespace}.{table}")


@pytest.fixture
def log(project: Project) -> _Log:
    return _Log(project)


@pytest.mark.long
def test_added_rows_go_on_once_whatever_dies(log: _Log) -> None:
    log.send(*range(4))
    assert log.run() == []
    for number, point in enumerate(KILL_POINTS):
        log.send(4 + number)

        def dies(reached: str, deadly_point: str = point) -> None:
            if reached == deadly_point:
                raise _Dead

        assert log.run("lines") == []
        for name in ("oslo", "last"):
            with suppress(_Dead):
                log.run(name, on_point=dies)
        assert log.run("oslo", "last") == []
    everything = range(4 + len(KILL_POINTS))
    assert log.ids("lines") == list(everything)
    assert log.ids("oslo") == [id_ for id_ in everything if _CITIES[id_ % 2] == "Oslo"]
    assert log.ids("last") == sorted([everything[-1], everything[-2]])


class _Dead(BaseException):
    """Stands for the end of a process."""


@pytest.mark.long
def test_a_source_that_was_made_again_is_named_and_a_rebuild_reads_it(log: _Log) -> None:
    log.send(0, 1, 2, 3)
    assert log.run() == []
    log.project.spark.sql(f"DROP TABLE lake.{log.project.namespace}.lines")
    log.send(5)
    assert log.run() == ["source-recreated", "source-recreated"]
    for name in ("oslo", "last"):
        log.rebuild(name)
    assert log.ids("oslo") == [1, 3, 5]
    assert log.ids("last") == [2, 5]
    log.send(4, 7)
    assert log.run() == []
    assert log.ids("oslo") == [1, 3, 5, 7]
    assert log.ids("last") == [4, 7]


def test_a_commit_that_has_expired_before_it_was_read_is_named(log: _Log) -> None:
    log.send(0, 1)
    assert log.run() == []
    log.send(2, 3)
    assert log.run("lines") == []
    table = log.java("lines")
    table.manageSnapshots().removeTag("sluice").commit()
    old_ids = [
        snapshot.snapshotId() for snapshot in table.snapshots() if snapshot.snapshotId() != table.currentSnapshot().snapshotId()
    ]
    for snapshot in old_ids:
        table.expireSnapshots().expireSnapshotId(snapshot).commit()
    assert log.run("oslo") == ["source-expired"]
    log.rebuild("oslo")
    assert log.ids("oslo") == [1, 3]


def test_rows_that_are_gone_from_a_table_that_only_grows_are_named(log: _Log) -> None:
    log.send(0, 1)
    assert log.run() == []
    log.project.spark.sql(f"DELETE FROM lake.{log.project.namespace}.lines WHERE id = 1")
    log.send(3)
    assert log.run("lines") == []
    assert log.run("oslo") == ["source-undone"]
    log.rebuild("oslo")
    assert log.ids("oslo") == [3]


def test_maintenance_keeps_what_readers_have_not_read(log: _Log) -> None:
    log.project.template = LOG.replace(
        "into: {{table: {namespace}.lines}}",
        "into: {{table: {namespace}.lines}}\nmaintain: {{keep_at_least: 1, keep_snapshots_for: 1h}}",
    )
    log.send(0, 1)
    assert log.run() == []
    for id_ in (2, 3, 4):
        log.send(id_)
        assert log.run("lines") == []
    later = datetime.now(timezone.utc) + timedelta(days=3)
    context = Context(log.project.plan, spark=lambda: log.project.spark, clock=lambda: later)
    lines = next(pipeline for pipeline in context.plan.pipelines if pipeline.name == "lines")
    before = len(list(log.java("lines").snapshots()))
    list(maintain.maintain(context, lines))
    assert len(list(log.java("lines").snapshots())) < before
    assert log.run("oslo", "last") == []
    assert log.ids("oslo") == [1, 3]
    assert log.ids("last") == [3, 4]
