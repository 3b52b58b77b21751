"""Changes of a database's table, as Debezium sends them, applied: the table is then what the database's is."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.publish.batch import Batch, next_batch
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Plan
from tests.support.project import plan_for
from tests.support.selection import EXAMPLES, few, searched

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BEGIN = datetime(2026, 1, 5, tzinfo=timezone.utc)
CLOCK = (0, 0, 7, 3, 3, 2, 9, 4, 1)  # seconds of Kafka's clock, message by message, which steps back
NOT_SENT = "__debezium_unavailable_value"
SPEC = """
topic: orders
value: debezium_json
columns: {id: bigint, amount: int, note: string, tags: array<string>, nums: array<int>}
---
pipeline: orders
from: {topic: orders}
steps: [STEPS]
into: {table: NAMESPACE.orders, write: WRITE, keys: [id], MORE}
expect: [{column: amount, not_null: true}, {when: "note is null or length(note) < 10"}]
"""
Row = dict[str, Any]
UNSENT = {"note": NOT_SENT, "tags": [NOT_SENT], "nums": list(NOT_SENT.encode())}  # as Debezium writes what it does not know


def row(id_: int, amount: int, note: str | None) -> Row:
    return {"id": id_, "amount": amount, "note": note, "tags": [f"{note}"], "nums": [amount]}


@dataclass
class Database:
    """A table, and Debezium's events of it."""

    rows: dict[int, Row] = field(default_factory=dict)
    events: list[bytes | None] = field(default_factory=list)

    def say(self, op: str, before: Row | None = None, after: Row | None = None) -> None:
        source = {"ts_ms": int((BEGIN + timedelta(seconds=len(self.events))).timestamp() * 1000)}
        self.events.append(json.dumps({"op": op, "before": before, "after": after, "source": source}).encode())

    def insert(self, id_: int, amount: int, note: str | None, op: str = "c") -> None:
        if id_ not in self.rows or op == "r":
            self.rows[id_] = row(id_, amount, note)
            self.say(op, None, self.rows[id_])

    def snapshot(self, id_: int, amount: int, note: str | None) -> None:
        self.insert(id_, amount, note, "r")

    def update(self, id_: int, amount: int, note: str | None) -> None:
        if id_ in self.rows:
            self.rows[id_] = row(id_, amount, note)
            self.say("u", None, self.rows[id_])

    def touch(self, id_: int, amount: int, _: str | None) -> None:
        """Updates a row: a large unchanged value is not sent."""
        if id_ in self.rows:
            self.rows[id_] = {**self.rows[id_], "amount": amount}
            self.say("u", None, {**self.rows[id_], **UNSENT})

    def delete(self, id_: int, amount: int, note: str | None) -> None:
        if id_ in self.rows:
            self.say("d", dict.fromkeys(self.rows[id_]) | {"id": id_} if amount % 2 else self.rows[id_])
            self.events.append(None)
            del self.rows[id_]

    def move(self, id_: int, amount: int, note: str | None) -> None:
        """Changes the primary key of a row."""
        new_id = id_ % 4 + 1
        if id_ in self.rows and new_id not in self.rows:
            row = {**self.rows[id_], "id": new_id}
            self.delete(id_, amount, note)
            self.rows[new_id] = row
            self.say("c", None, row)

    def truncate(self, *_: Any) -> None:
        self.rows = {}
        self.say("t")


operation = st.tuples(
    st.sampled_from(["insert", "insert", "snapshot", "update", "touch", "touch", "delete", "move", "truncate"]),
    st.integers(1, 4), st.integers(0, 9), st.sampled_from([None, "a", "b"]),
)  # fmt: skip


def plan_of(lake: Path, write: str, steps: str = "", options: str = "") -> Plan:
    specs = SPEC.replace("NAMESPACE", f"n{uuid.uuid4().hex[:10]}").replace("STEPS", steps).replace("WRITE", write)
    return plan_for(lake, "127.0.0.1:1", specs.replace(", MORE", f", {options}" if options else ""))


class Table:
    def __init__(self, plan: Plan, spark: Any) -> None:
        self.plan = plan
        self.spark = spark
        self.messages: list[Message] = []
        self.batches = 0

    def take(self, values: Sequence[bytes | None]) -> Batch | None:
        """Runs the next batch: several messages have the same millisecond, and Kafka's clock steps back."""
        self.batches += 1
        for value in values:
            offset = len(self.messages)
            self.messages.append(
                Message(
                    batch=self.batches,
                    topic="orders",
                    partition=0,
                    offset=offset,
                    timestamp=BEGIN + timedelta(seconds=CLOCK[offset % len(CLOCK)]),
                    value=value,
                )
            )
        return next_batch(
            Context(self.plan, spark=lambda: self.spark, source=GivenMessages(tuple(self.messages), self.batches, 1)),
            self.pipeline,
        )

    @property
    def pipeline(self) -> Any:
        return self.plan.pipelines[0]

    def rows(self, bad: bool = False) -> Iterator[Row]:
        table = self.pipeline.table
        iceberg_table = table_state.table(table.catalog, table.bad_rows if bad else table.identifier)
        yield from iceberg_table.scan().to_arrow().to_pylist() if iceberg_table else ()

    def current(self) -> dict[int, Row]:
        names = ("id", "amount", "note", "tags", "nums")
        rows = [row for row in self.rows() if row.get("is_current", True)]
        assert len({row["id"] for row in rows}) == len(rows), "a key has two rows"
        return {row["id"]: {name: row[name] for name in names} for row in rows}


@pytest.mark.parametrize(("write", "examples"), few([("upsert", 1), ("upsert", EXAMPLES), ("history", EXAMPLES)], ("upsert", 1)))
def test_the_table_is_that_of_the_database(write: str, examples: int, lake: Path, spark: Any) -> None:
    @searched(examples)
    @given(st.lists(st.lists(operation, min_size=1, max_size=8), min_size=2, max_size=4))
    def same(batches: list[list[tuple[str, int, int, str | None]]]) -> None:
        database, table, event_count = Database(), Table(plan_of(lake, write), spark), 0
        for batch in batches:
            for name, *arguments in batch:
                getattr(database, name)(*arguments)
            if database.events[event_count:]:
                table.take(database.events[event_count:])
                event_count = len(database.events)
                assert table.current() == database.rows
        assert list(table.rows(bad=True)) == []

    same()


@pytest.mark.long
@pytest.mark.parametrize("write", ["upsert", "history"])
def test_what_was_truncated_does_not_come_back(write: str, lake: Path, spark: Any) -> None:
    """Late rows in another partition do not come back, nor do rows of the truncate's own batch."""
    database, table = Database(), Table(plan_of(lake, write, options="order_by: _source_at"), spark)
    for id_ in (1, 2, 3):
        database.insert(id_, 1, "a")
    database.truncate()
    database.insert(4, 1, "b")
    late_event = database.events.pop(2)
    table.take(database.events)
    assert set(table.current()) == {4}
    table.take([late_event])
    assert set(table.current()) == {4}
    if write == "history":
        validity = {row["id"]: (row["valid_from"], row["valid_to"]) for row in table.rows()}
        assert {validity[id_][1] for id_ in (1, 2, 3)} == {validity[4][0] - timedelta(seconds=1)}


def test_a_value_that_nobody_knows_stays_what_debezium_wrote(lake: Path, spark: Any) -> None:
    database, table = Database({1: row(1, 1, "x")}), Table(plan_of(lake, "upsert"), spark)
    database.touch(1, 2, None)
    table.take(database.events)
    assert table.current()[1] == {"id": 1, "amount": 2, **UNSENT}


@pytest.mark.long
def test_steps_behind_changes(lake: Path, spark: Any) -> None:
    """No step leaves out a delete; a row that needs a value that was not sent is a bad row; a renamed column keeps its value."""
    steps = "{filter: amount >= 0}, {rename: {tags: labels}}, {derive: {loud: upper(note)}}, {drop: [_op]}"
    database, table = Database(), Table(plan_of(lake, "upsert", steps), spark)
    for id_ in (1, 2, 3):
        database.insert(id_, 1, "a")
    database.insert(5, -1, "left out")
    table.take(database.events)
    database.delete(2, 1, None)
    database.touch(1, 7, None)
    database.update(3, 7, "c")
    event = json.loads(database.events[-1] or b"")
    event["after"]["tags"] = [NOT_SENT]
    table.take([*database.events[4:-1], json.dumps(event).encode()])
    assert {row["id"]: (row["amount"], row["loud"], row["labels"]) for row in table.rows()} == {
        1: (1, "A", ["a"]),
        3: (7, "C", ["a"]),
    }
    assert [(row["stage"], row["code"]) for row in table.rows(bad=True)] == [("value", "value_not_sent")]


def test_deletes_that_are_not_wanted_and_more_that_are(lake: Path, spark: Any) -> None:
    database = Database()
    for id_ in (1, 2, 3):
        database.insert(id_, 1, "a")
    database.delete(1, 0, None)
    database.update(2, 0, "b")
    ignoring_table, deleting_table = (
        Table(plan_of(lake, "upsert", options=f"deletes: {rule}"), spark) for rule in ("ignore", "{when: amount = 0}")
    )
    batch = ignoring_table.take(database.events)
    assert batch is not None
    assert batch.filtered == 2
    assert {id_: row["note"] for id_, row in ignoring_table.current().items()} == {1: "a", 2: "b", 3: "a"}
    deleting_table.take(database.events)
    assert set(deleting_table.current()) == {3}


def test_what_decides_must_be_known(lake: Path, spark: Any) -> None:
    """A condition on a value that was not sent would delete by what Debezium wrote in its place."""
    database = Database()
    for id_ in (1, 2):
        database.insert(id_, 1, "x")
    database.touch(1, 2, None)
    database.update(2, 2, "y")
    table = Table(plan_of(lake, "upsert", options="deletes: {when: \"note <> 'x'\"}"), spark)
    table.take(database.events)
    assert {id_: row["amount"] for id_, row in table.current().items()} == {1: 1}
    assert [row["code"] for row in table.rows(bad=True)] == ["value_not_sent"]


@pytest.mark.long
def test_items_of_a_list(lake: Path, spark: Any) -> None:
    database = Database()
    database.insert(1, 1, "a")
    database.insert(2, 1, "b")
    database.touch(1, 2, None)
    database.delete(2, 0, None)
    plan = plan_of(lake, "upsert", "{explode: {column: tags}}").pipelines[0]
    assert "tags" not in dict(plan.table.keyed.unsent if plan.table.keyed else ())
    table = Table(plan_of(lake, "upsert", "{explode: {column: tags}}", "sort_by: [id]"), spark)
    table.take(database.events)
    assert [(row["id"], row["tags"], row["amount"]) for row in table.rows()] == [(1, "a", 1)]
    assert [row["code"] for row in table.rows(bad=True)] == ["value_not_sent"]


def of_two(lake: Path, options: str = "") -> Plan:
    """The rows of two topics in one table."""
    specs = SPEC.replace("NAMESPACE", f"n{uuid.uuid4().hex[:10]}").replace("STEPS", "").replace("WRITE", "upsert")
    specs = specs.replace(", MORE", options)
    two_topics = specs.replace("from: {topic: orders}", "from: {topics: [orders, others]}").replace(
        "topic: orders\n", "topic: others\n", 1
    )
    first_document = specs.split("---")[0]
    return plan_for(lake, "127.0.0.1:1", f"{first_document}---\n{two_topics.strip()}")


def test_a_delete_without_its_order_is_a_bad_row(lake: Path, spark: Any) -> None:
    """The delete would be older than each row of its key, and would do nothing."""
    database, table = Database(), Table(of_two(lake, ", order_by: amount"), spark)
    database.insert(1, 1, "a")
    database.insert(2, 1, "b")
    database.delete(1, 0, None)
    database.say("d", {"id": 2, "amount": None, "note": None, "tags": None, "nums": None})
    table.take(database.events)
    assert [row["code"] for row in table.rows(bad=True)] == ["no_order"]


def test_a_truncate_of_several_tables_says_which_one(lake: Path) -> None:
    """A truncate says which table it is of; which rows came of it nobody knows."""
    (pipeline,) = of_two(lake).pipelines
    assert pipeline.table.keyed is not None
    assert pipeline.table.keyed.truncates is None
    assert [fault.code for fault in pipeline.topic.decoding.faults if fault.code == "truncated"] == ["truncated"]
