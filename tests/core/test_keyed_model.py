"""Rows by their keys against a model in plain Python: random messages in random partitions, orders and batches, with runs that die on
the way, a second writer, commits of others, joined files and readers in between. The model is short; that is the point of it.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.maintain import compact, due, maintain
from framework.core.publish.batch import next_batch
from framework.core.query.one_select import ask
from framework.core.rules.protocol import KILL_POINTS, UPSERT_POINTS
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan
from tests.support.project import plan_for
from tests.support.selection import EXAMPLES, few, searched

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: orders
value: json
key: {{format: json, columns: {{id: bigint, region: string}}}}
{event_time}
columns: {{name: string, at: {{type: timestamp, format: epoch_millis}}}}
---
pipeline: orders
from: {{topic: orders}}
into:
  table: {namespace}.orders
  write: {write}
  {keys}
  deletes: {deletes}
  format_version: {version}
  kafka_columns: false
  partition_by: {partition_by}
maintain: {{keep_at_least: 1}}
"""


@dataclass(frozen=True)
class Sent:
    """A message; the `name` of a tombstone is None."""

    region: str
    id: int
    name: str | None
    time: int
    kafka_at: int
    partition: int


@dataclass(frozen=True)
class Trouble:
    """An event while a batch is at a kill point."""

    kind: str  # dies, joins, maintains, foreign, another
    where: str


BAD = "bad"  # the `name` of a message that is not JSON
HOSTILE = (
    "${env:HOME}/x",
    "${spark.app.name}",
    "$${env:HOME}",
    "a' OR '1'='1",
    "\\",
    "\\'",
    '"',
    "a`b",
    "a\0b",
    "\u2028",
    "é",
    "e\u0301",
)
POINTS = sorted({*KILL_POINTS, *UPSERT_POINTS})
regions = st.sampled_from(["", "eu", "us" * 600, "x" * 200_000, *HOSTILE])
sent = st.builds(
    Sent, regions, st.integers(1, 2), st.none() | st.sampled_from(["a", "b", "del"]),
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 2),
)  # fmt: skip
trouble = st.builds(
    Trouble,
    st.sampled_from(["dies", "dies", "joins", "maintains", "foreign", "another"]),
    st.sampled_from(POINTS),
)
batches = st.lists(st.tuples(st.lists(sent, min_size=1, max_size=8), st.none() | trouble), min_size=2, max_size=4)
Key = tuple[str, int]
Row = tuple[Any, ...]


def happened(messages: Sequence[Message], deletes: str, by_event_time: bool) -> Mapping[Key, list[tuple[Any, str | None]]]:
    """The states of each key in their order: the name, or None where it was deleted. Among a key's messages with the same event
    time, the later offset of a partition is newer, and Kafka's time decides between partitions."""
    histories: dict[Key, list[tuple[Any, str | None]]] = {}
    risen: dict[Any, datetime] = {}
    for message in messages:
        if message.value == b"{":
            continue
        key = json.loads(message.key or b"")
        value: Any = json.loads(message.value) if message.value else None
        time = message.timestamp if value is None else datetime.fromtimestamp(value["at"] / 1000, timezone.utc)
        if value is None and deletes != "tombstones":
            continue
        is_deleted = value is None or (deletes not in ("tombstones", "ignore") and value["name"] == "del")
        event_time = (time,) if by_event_time else ()
        row_key, log = (key["region"], key["id"]), (key["region"], key["id"], *event_time, message.partition)
        risen[log] = max(message.timestamp, risen.get(log, message.timestamp))
        order = (*event_time, risen[log], message.partition, message.offset)
        histories.setdefault(row_key, []).append((order, None if is_deleted else value["name"]))
    return {key: sorted(history, key=lambda state: state[0]) for key, history in histories.items()}


def upserted(happened: Mapping[Key, list[tuple[Any, str | None]]]) -> list[Row]:
    return [(*key, history[-1][1]) for key, history in happened.items() if history[-1][1] is not None]


def versions(happened: Mapping[Key, list[tuple[Any, str | None]]]) -> list[Row]:
    version_rows = []
    for key, history in happened.items():
        ends = [order[0] for order, _ in history[1:]]
        for index, (order, name) in enumerate(history):
            if name is not None:
                version_rows.append((*key, name, order[0], ends[index] if index < len(ends) else None, index == len(ends)))
    return version_rows


def appended(happened: Mapping[Key, list[tuple[Any, str | None]]]) -> list[Row]:
    return [(*key, name) for key, history in happened.items() for _, name in history if name is not None]


NAMES = ("region", "id", "name")
VERSIONS = (*NAMES, "valid_from", "valid_to", "is_current")
COLUMNS = {"append": NAMES, "upsert": NAMES, "history": VERSIONS, "accumulate": ("symbol", "window_start", "trades")}
MODELS = {"append": appended, "upsert": upserted, "history": versions}


def as_messages(sent_batches: Sequence[tuple[list[Sent], Trouble | None]]) -> tuple[Message, ...]:
    offsets = [0, 0, 0]
    messages = []
    for number, (batch, _) in enumerate(sent_batches, 1):
        for sent in batch:
            value = None if sent.name is None else json.dumps({"name": sent.name, "at": sent.time * 1000}).encode()
            value = b"{" if sent.name == BAD else value
            moment = datetime.fromtimestamp(sent.kafka_at, timezone.utc)
            key = json.dumps({"id": sent.id, "region": sent.region}).encode()
            messages.append(
                Message(
                    batch=number,
                    topic="orders",
                    partition=sent.partition,
                    offset=offsets[sent.partition],
                    timestamp=moment,
                    key=key,
                    value=value,
                )
            )
            offsets[sent.partition] += 1
    return tuple(messages)


def maintained(context: Context, pipeline: Pipeline) -> None:
    """Compacts all that can be compacted and expires all snapshots that nothing needs, as if nine days had passed."""
    context.clock = lambda: datetime.now(timezone.utc) + timedelta(days=9)
    with pytest.MonkeyPatch.context() as patch:
        for module in (due, compact):
            patch.setattr(module, "FEWEST_FILES", 1)
        done = [words for result in maintain.maintain(context, pipeline) for words in result.says]
    assert not any("left to the next time" in words for words in done), done


class Died(BaseException):
    """Ends a run like a SIGKILL: no code but a test's catches it."""


BY_DEL = "{when: \"name = 'del'\"}"
TABLES = [
    ("upsert", "tombstones", 3, "[]", "at"),
    ("upsert", BY_DEL, 2, '["truncate(2, region)"]', "at"),
    ("upsert", "ignore", 3, '["bucket(2, id)"]', "at"),
    ("history", "tombstones", 3, "[]", "at"),
    ("history", BY_DEL, 2, "[is_current]", "at"),
    ("append", "ignore", 3, '["truncate(2, region)"]', "at"),
    ("upsert", "tombstones", 3, "[]", "kafka"),
    ("upsert", BY_DEL, 2, "[]", "kafka"),
    ("history", "tombstones", 3, "[]", "kafka"),
]


@pytest.mark.parametrize(
    ("write", "deletes", "version", "partition_by", "time", "examples"),
    few([(*TABLES[1], 1), *((*table, EXAMPLES) for table in TABLES)], (*TABLES[1], 1)),
)
def test_as_the_model_says(
    write: str, deletes: str, version: int, partition_by: str, time: str, examples: int, lake: Path, spark: Any
) -> None:
    @searched(examples)
    @given(batches)
    def same(sent_batches: list[tuple[list[Sent], Trouble | None]]) -> None:
        specs = specs_of(write, deletes, version, partition_by, time)
        as_modelled(plan_for(lake, "127.0.0.1:1", specs), sent_batches, deletes, spark)

    same()


HOSTILE_TABLES = [("upsert", "tombstones"), ("history", "tombstones"), ("append", "ignore")]


@pytest.mark.parametrize(("write", "deletes"), few(HOSTILE_TABLES, HOSTILE_TABLES[0]))
def test_hostile_keys_are_kept_apart(write: str, deletes: str, lake: Path, spark: Any) -> None:
    """Each key comes, comes again, is deleted where that is possible, and comes too late."""
    plan = plan_for(lake, "127.0.0.1:1", specs_of(write, deletes, 3, "[]"))
    moments = ((10, "a"), (20, "b"), (30, None), (15, "late"))
    batches = [([Sent(region, 1, name, time, time, 0) for region in HOSTILE], None) for time, name in moments]
    as_modelled(plan, batches, deletes, spark)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dies", "another", "maintains"])
@pytest.mark.parametrize("write", ["upsert", "history"])
def test_trouble_at_any_point_changes_no_row(write: str, kind: str, lake: Path, spark: Any) -> None:
    """A run dies at the point, or another one loads the batch or maintains the table there; batches have late rows, too."""
    plan = plan_for(lake, "127.0.0.1:1", specs_of(write, "tombstones", 3, "[]"))
    batches: list[tuple[list[Sent], Trouble | None]] = []
    for index, point in enumerate(POINTS):
        time = 10 + 2 * index
        values = [
            (1, f"{index}", time),
            (2, None if index % 2 else "b", time),
            (3, "b" if index % 2 else None, time),
            (4, "late", time - 3),
        ]
        sent = [Sent("eu", id_, name, moment, time, id_ % 3) for id_, name, moment in values]
        batches.append(([*sent, Sent("eu", 5, BAD, time, time, 0)], Trouble(kind, point)))
    happened = as_modelled(plan, batches, "tombstones", spark)
    assert happened == len(POINTS)


def specs_of(write: str, deletes: str, version: int, partition_by: str, time: str = "at") -> str:
    """The specs; the event time `at` or Kafka's time says which row is newer."""
    keys = "keys: [region, id]" if write != "append" else "catalog: lake"
    namespace = f"n{uuid.uuid4().hex[:10]}"
    event_time = "event_time: at" if time == "at" else ""
    return SPEC.format(
        namespace=namespace, write=write, keys=keys, deletes=deletes, version=version, partition_by=partition_by,
        event_time=event_time,
    )  # fmt: skip


def as_modelled(plan: Plan, sent_batches: Sequence[tuple[list[Sent], Trouble | None]], deletes: str, spark: Any) -> int:
    """Loads the batches, compares the table with the model after each, and returns how often there was trouble."""
    messages, (pipeline,), trouble_count = as_messages(sent_batches), plan.pipelines, 0
    for number, (_, trouble) in enumerate(sent_batches, 1):
        context = Context(plan, spark=lambda: spark, source=GivenMessages(messages, number, 2))
        pending = [trouble] if trouble else []
        with suppress(Died):
            next_batch(with_trouble(context, pending, number), pipeline)
        trouble_count += trouble is not None and not pending
        next_batch(context, pipeline)
        so_far = [message for message in messages if message.batch <= number]
        read = rows if number == len(sent_batches) else read_once
        expected = happened(so_far, deletes, pipeline.topic.event_time is not None)
        assert read(pipeline, spark) == Counter(MODELS[pipeline.table.write.name](expected))
        assert next_batch(context, pipeline) is None
    return trouble_count


def read_once(pipeline: Pipeline, spark: Any) -> Counter[Row]:
    """Reads the rows with PyIceberg."""
    names = COLUMNS[pipeline.table.write.name]
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    arrow = table.scan(selected_fields=names).to_arrow()
    return Counter(zip(*(arrow[name].to_pylist() for name in names), strict=True))


def rows(pipeline: Pipeline, spark: Any) -> Counter[Row]:
    """Reads the rows with three engines, which must agree."""
    names, table_rows = COLUMNS[pipeline.table.write.name], read_once(pipeline, spark)
    by_spark = spark.table(f"lake.{pipeline.table.identifier}").select(*names).toArrow()
    assert table_rows == Counter(zip(*(by_spark[name].to_pylist() for name in names), strict=True))
    texts = [f"CAST({name} AS VARCHAR)" for name in names]
    answer = ask([pipeline.table.catalog], f"SELECT {', '.join(texts)} FROM {pipeline.table.identifier}")
    assert Counter(map(tuple, answer.rows())) == Counter(tuple(map(as_duckdb, row)) for row in table_rows.elements())
    return table_rows


def as_duckdb(value: Any) -> str | None:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}+00"
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def with_trouble(context: Context, pending: list[Trouble], number: int) -> Context:
    """A context in which the pending trouble happens once, at its point."""

    def strike(point: str) -> None:
        if pending and pending[0].where == point:
            happen(pending.pop().kind, context, number)

    return Context(context.plan, spark=lambda: context.spark, source=context._source, at=strike)


def happen(kind: str, context: Context, number: int) -> None:
    pipeline = context.plan.pipelines[0]
    table = pipeline.table
    exists = metadata.read(table.catalog, table.identifier) is not None
    if kind == "dies":
        raise Died
    if kind == "another":
        next_batch(context, pipeline)
    elif kind == "maintains" and exists:
        before = rows(pipeline, context.spark)
        maintained(context, pipeline)
        assert rows(pipeline, context.spark) == before
    elif kind == "joins" and exists:
        before = rows(pipeline, context.spark)
        jvm: Any = context.spark._jvm
        action = jvm.org.apache.iceberg.spark.actions.SparkActions.get(context.spark._jsparkSession)
        action.rewriteDataFiles(context.lake(pipeline).load(table.identifier)).option("rewrite-all", "true").execute()
        assert rows(pipeline, context.spark) == before
    elif exists:
        context.spark.sql(f"ALTER TABLE lake.{table.identifier} SET TBLPROPERTIES ('note' = '{number}')")
