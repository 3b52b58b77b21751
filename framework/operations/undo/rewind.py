"""Rewinding a pipeline: it reads messages again from a moment on, and its table keeps its rows.

Only rows by their keys bear that: a message that is read again changes its row to what the spec of today makes of it. Its bad rows are
deleted before, since it can become one again. Rows that a message made under another key, or that its filter drops today, stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from framework.base import iso_times
from framework.base.errors import RefusedError
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.kafka.cluster import Kafka
from framework.core.rules import refusals
from framework.core.rules.protocol import Partition
from framework.core.rules.refusals import Acceptance
from framework.operations.undo.read_again import into_another
from framework.plan import Pipeline, Plan


@dataclass(frozen=True)
class Rewind:
    """The effects of reading again from a time on."""

    messages: int
    offsets: str  # from which on, in words
    moves: Acceptance


def judged(context: Context, pipeline: Pipeline, to: datetime) -> Rewind:
    """The effects of reading again from a time on, without Spark."""
    keyed = pipeline.table.keyed
    if keyed is None or keyed.versions or pipeline.source:
        raise _refused(context.plan, pipeline, to)
    state = table_state.state(pipeline.table)
    if state is None:
        raise refusals.no_table(pipeline)
    position = refusals.check(pipeline, state, context.source(pipeline).topic_state())
    kafka = context.kafka(pipeline)
    assert isinstance(kafka, Kafka), "messages of a test have no times"
    ends: dict[Partition, int] = dict(position.ends)
    for topic in pipeline.topics:
        for each, offset in kafka.offsets_at(topic, to).items():
            ends[each] = min(ends.get(each, offset), offset)
    back = replace(position, ends=ends, forget=(-1, position.batch), rewound=True, snapshot=state.main)
    messages = refusals.messages_between(ends, position.ends)
    return Rewind(messages, refusals.offsets(ends), Acceptance("", back, state))


def _refused(plan: Plan, pipeline: Pipeline, to: datetime) -> RefusedError:
    table = pipeline.table.identifier
    time = iso_times.text(to)
    if pipeline.source:
        hint = f"`sluice rebuild {pipeline.name}` computes it from the whole table"
        if pipeline.source.reads != "all":
            hint = f"{hint}; `sluice rollback {pipeline.name} --to {time}` undoes its commits since then"
        return RefusedError("cannot-rewind", f"{table} is made of the table {pipeline.source.identifier}, not of messages", hint)
    why = "each message that is read again would be a second row"
    if pipeline.table.accumulated:
        why = "each message that is read again would be added a second time"
    if pipeline.table.keyed:
        why = "it has each version of a row once, and those that are read again would begin once more"
    hint = (
        f"`{into_another(plan, pipeline, to)}` reads them into a new table; "
        f"`sluice rollback {pipeline.name} --to {time}` takes the rows back, too, and the next run reads their messages again"
    )
    return RefusedError("cannot-rewind", f"{table} is written by `write: {pipeline.table.write.name}`: {why}", hint)
