"""Rewinding a pipeline: it reads messages again from a moment on, and its table keeps its rows.

This is possible only for tables with one row per key: a message that is read again changes its row by today's spec. Its bad rows are
deleted first, since it can become one again. Rows that a message made under another key, or that today's filter drops, stay.
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
from framework.plan import AllRows, Keyed, Pipeline, Plan
from framework.plan.totals import Totals


@dataclass(frozen=True)
class Rewind:
    """The effects of reading again from a time on."""

    messages: int
    offsets: str  # the offsets at which reading begins, in words
    moves: Acceptance


def judged(context: Context, pipeline: Pipeline, moment: datetime) -> Rewind:
    """The effects of reading again from `moment` on. Starts no Spark."""
    if not pipeline.table.rule.newest_only or pipeline.read_tables:
        raise _refused(context.plan, pipeline, moment)
    state = table_state.state(pipeline.table)
    if state is None:
        raise refusals.no_table(pipeline)
    position = refusals.check(pipeline, state, context.source(pipeline).topic_state())
    kafka = context.kafka(pipeline)
    assert isinstance(kafka, Kafka), "messages of a test have no times"
    ends: dict[Partition, int] = dict(position.ends)
    for topic in pipeline.topics:
        for partition, offset in kafka.offsets_at(topic, moment).items():
            ends[partition] = min(ends.get(partition, offset), offset)
    new_position = replace(position, ends=ends, forget=(-1, position.batch), rewound=True, snapshot=state.main)
    messages = refusals.messages_between(ends, position.ends)
    return Rewind(messages, refusals.offsets(ends), Acceptance("", new_position, state))


def _refused(plan: Plan, pipeline: Pipeline, moment: datetime) -> RefusedError:
    table = pipeline.table.identifier
    time = iso_times.text(moment)
    if pipeline.read_tables:
        hint = f"`sluice rebuild {pipeline.name}` computes it from the whole table"
        if not pipeline.computes_all:
            hint = f"{hint}; `sluice rollback {pipeline.name} --to {time}` undoes its commits since then"
        return RefusedError("cannot-rewind", f"{table} is made of the table {pipeline.source_name}, not of messages", hint)
    match pipeline.table.rule:
        case AllRows():
            why = "each message that is read again would be a second row"
        case Totals():
            why = "each message that is read again would be added a second time"
        case Keyed():
            why = "it has each version of a row once, and those that are read again would begin once more"
    hint = (
        f"`{into_another(plan, pipeline, moment)}` reads them into a new table; "
        f"`sluice rollback {pipeline.name} --to {time}` takes the rows back, too, and the next run reads their messages again"
    )
    return RefusedError("cannot-rewind", f"{table} is written by `write: {pipeline.table.write.name}`: {why}", hint)
