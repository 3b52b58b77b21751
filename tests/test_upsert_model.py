"""Upserts against a model in plain Python: random messages in random partitions, orders and batches, with runs that die on the way,
commits of others, joined files and readers in between. The model is sixty words long; that is the point of it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from framework.engine import metadata
from framework.engine.batch import next_batch
from framework.engine.context import Context
from framework.engine.local import Local
from framework.engine.protocol import KILL_POINTS, UPSERT_POINTS
from framework.plan.model import Message, Pipeline
from tests.project import plan_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EXAMPLES = int(os.environ.get("EXAMPLES", "4"))  # more by hand: EXAMPLES=200 pytest tests/test_upsert_model.py
PHASES = (Phase.explicit, Phase.generate)  # each try takes seconds: what fails is not made smaller
SPEC = """
topic: orders
value: json
key: {{format: json, columns: {{id: bigint, region: string}}}}
event_time: at
columns: {{name: string, at: {{type: timestamp, format: epoch_millis}}}}
---
pipeline: orders
from: {{topic: orders}}
into:
  table: {namespace}.orders
  write: upsert
  keys: [region, id]
  deletes: {deletes}
  format_version: {version}
  kafka_columns: false
  partition_by: {partition_by}
"""


@dataclass(frozen=True)
class Sent:
    """A message. `name` is none of a tombstone."""

    region: str
    id: int
    name: str | None
    at: int
    kafka_at: int
    partition: int


@dataclass(frozen=True)
class Trouble:
    """What happens before a batch."""

    kind: str  # dies, joins, foreign
    where: str = ""


sent = st.builds(
    Sent, st.sampled_from(["", "eu", "us" * 600]), st.integers(1, 2), st.none() | st.sampled_from(["a", "b", "del"]),
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 2),
)  # fmt: skip
trouble = st.builds(
    Trouble, st.sampled_from(["dies", "dies", "joins", "foreign"]), st.sampled_from(sorted({*KILL_POINTS, *UPSERT_POINTS}))
)
batches = st.lists(st.tuples(st.lists(sent, min_size=1, max_size=8), st.none() | trouble), min_size=2, max_size=4)


def modelled(messages: Sequence[Message], deletes: str) -> dict[tuple[str, int], str]:
    """The newest message of each key, if it is not one that deletes."""
    newest: dict[tuple[str, int], Any] = {}
    for each in messages:
        key = json.loads(each.key or b"")
        value: Any = json.loads(each.value) if each.value else None
        at = each.timestamp if value is None else datetime.fromtimestamp(value["at"] / 1000, timezone.utc)
        if value is None and deletes != "tombstones":
            continue
        gone = value is None or (deletes not in ("tombstones", "ignore") and value["name"] == "del")
        found = ((at, each.timestamp, each.partition, each.offset), None if gone else value["name"])
        newest[key["region"], key["id"]] = max(found, newest.get((key["region"], key["id"]), found), key=lambda one: one[0])
    return {key: name for key, (_, name) in newest.items() if name is not None}


def as_messages(given_: Sequence[tuple[list[Sent], Trouble | None]]) -> tuple[Message, ...]:
    offsets = [0, 0, 0]
    made = []
    for number, (batch, _) in enumerate(given_, 1):
        for each in batch:
            value = None if each.name is None else json.dumps({"name": each.name, "at": each.at * 1000}).encode()
            moment = datetime.fromtimestamp(each.kafka_at, timezone.utc)
            key = json.dumps({"id": each.id, "region": each.region}).encode()
            made.append(Message(number, "orders", each.partition, offsets[each.partition], moment, key, value, ()))
            offsets[each.partition] += 1
    return tuple(made)


class Died(BaseException):
    """What a SIGKILL is to everything but the operating system."""


@pytest.mark.parametrize(
    ("deletes", "version", "partition_by"),
    [("tombstones", 3, "[]"), ("{when: \"name = 'del'\"}", 2, '["truncate(2, region)"]'), ("ignore", 3, '["bucket(2, id)"]')],
)
def test_as_the_model_says(deletes: str, version: int, partition_by: str, lake: Path, spark: Any) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, derandomize="EXAMPLES" not in os.environ, database=None, phases=PHASES)
    @given(batches)
    def same(given_: list[tuple[list[Sent], Trouble | None]]) -> None:
        namespace = f"n{uuid.uuid4().hex[:10]}"
        specs = SPEC.format(namespace=namespace, deletes=deletes, version=version, partition_by=partition_by)
        plan = plan_for(lake, "127.0.0.1:1", specs)
        messages = as_messages(given_)
        for number, (_, before) in enumerate(given_, 1):
            source = Local(messages, number, 2)
            if before:
                happen(before, Context(plan, spark=lambda: spark, source=source), plan.pipelines[0], number)
            next_batch(Context(plan, spark=lambda: spark, source=source), plan.pipelines[0])
            found = rows(plan.pipelines[0], spark)
            so_far = [each for each in messages if each.batch <= number]
            assert found == modelled(so_far, deletes)
            assert next_batch(Context(plan, spark=lambda: spark, source=source), plan.pipelines[0]) is None

    same()


def rows(pipeline: Pipeline, spark: Any) -> Mapping[tuple[str, int], str]:
    from framework.engine import look

    table = look.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    found = table.scan(selected_fields=("region", "id", "name")).to_arrow().to_pylist()
    by_key = {(row["region"], row["id"]): row["name"] for row in found}
    assert len(by_key) == len(found), "a key has two rows"
    other = spark.table(f"lake.{pipeline.table.identifier}").select("region", "id", "name").collect()
    assert sorted(map(tuple, other)) == sorted((*key, name) for key, name in by_key.items())
    return by_key


def happen(what: Trouble, context: Context, pipeline: Pipeline, number: int) -> None:
    table = pipeline.table
    there = metadata.read(table.catalog, table.identifier) is not None
    if what.kind == "dies":

        def at(point: str) -> None:
            if point == what.where:
                raise Died

        dying = Context(context.plan, spark=lambda: context.spark, source=context._source, at=at)
        with suppress(Died):
            next_batch(dying, pipeline)
    elif what.kind == "joins" and there:
        jvm: Any = context.spark._jvm
        action = jvm.org.apache.iceberg.spark.actions.SparkActions.get(context.spark._jsparkSession)
        action.rewriteDataFiles(context.lake(pipeline).load(table.identifier)).option("rewrite-all", "true").execute()
    elif what.kind == "foreign" and there:
        context.spark.sql(f"ALTER TABLE lake.{table.identifier} SET TBLPROPERTIES ('note' = '{number}')")
