"""Rows by their keys against a model in plain Python: random messages in random partitions, orders and batches, with runs that die on
the way, a second writer, commits of others, joined files and readers in between. The model is short; that is the point of it.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from framework.core.context.context import Context
from framework.core.publish.batch import next_batch
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Plan
from tests.support.keyed_rows import HOSTILE, MODELS, SPEC, happened, read_once, rows
from tests.support.kill_points import POINTS, Died
from tests.support.project import plan_for
from tests.support.selection import EXAMPLES, few, searched
from tests.support.troubles import Trouble, trouble, with_trouble

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Sent:
    """A message; the `name` of a tombstone is None."""

    region: str
    id: int
    name: str | None
    time: int
    kafka_at: int
    partition: int


BAD = "bad"  # the `name` of a message that is not JSON
regions = st.sampled_from(["", "eu", "us" * 600, "x" * 200_000, *HOSTILE])
sent = st.builds(
    Sent, regions, st.integers(1, 2), st.none() | st.sampled_from(["a", "b", "del"]),
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 2),
)  # fmt: skip
batches = st.lists(st.tuples(st.lists(sent, min_size=1, max_size=8), st.none() | trouble), min_size=2, max_size=4)


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
    for number, (_, event) in enumerate(sent_batches, 1):
        context = Context(plan, spark=lambda: spark, source=GivenMessages(messages, number, 2))
        pending = [event] if event else []
        with suppress(Died):
            next_batch(with_trouble(context, pending, number), pipeline)
        trouble_count += event is not None and not pending
        next_batch(context, pipeline)
        so_far = [message for message in messages if message.batch <= number]
        read = rows if number == len(sent_batches) else read_once
        expected = happened(so_far, deletes, pipeline.topic.event_time is not None)
        assert read(pipeline, spark) == Counter(MODELS[pipeline.table.write.name](expected))
        assert next_batch(context, pipeline) is None
    return trouble_count
