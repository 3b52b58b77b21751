"""Replaying bad rows: today's spec decodes them and applies its steps again, and rows that pass land exactly once.

Rows that land are published by a commit of the table, as a batch. Their bad rows are marked after it; if this process dies in
between, the next run marks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from framework.base.errors import RefusedError, SluiceError
from framework.base.types import BOOLEAN
from framework.core.context.context import Context
from framework.core.iceberg.commit import again
from framework.core.iceberg.jvm_state import state
from framework.core.publish import side_rows, side_tables
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.batch import next_batch
from framework.core.publish.pinning import measured
from framework.core.rows import bad_rows
from framework.core.rows.frame import frame_of
from framework.core.rows.pins import Pins
from framework.core.rules import refusals
from framework.core.rules.protocol import Position
from framework.core.run.events import BatchDone, Began, Event
from framework.core.run.failures import ended
from framework.core.schemas import schema_lookup
from framework.core.spark.reading_errors import named_errors
from framework.core.staging import StagingTarget, admission
from framework.plan import BAD_ROW_COLUMNS, DISCARDED, OPEN, REPLAYED, Pipeline
from framework.sql import expressions
from framework.sql.expressions import ExpressionError, guarded


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The effects of a replay: messages, rows that would land, and bad rows that would stay, by code and reason."""

    messages: int
    waiting: int  # messages with bad rows, including these
    rows: int
    filtered: int
    bad: tuple[tuple[str, str, int], ...]


def refuse(pipeline: Pipeline) -> None:
    """Refuses a pipeline whose bad rows cannot be replayed."""
    if pipeline.read_tables:
        message = f"the bad rows of {pipeline.name} are rows of the table {pipeline.source_name}, not messages"
        raise RefusedError("cannot-replay", message, f"`sluice rebuild {pipeline.name}` computes its table again")
    if pipeline.bad_rows == "drop":
        into_option = "" if pipeline.table.rule.newest_only else f" --into {pipeline.table.identifier}_again"
        hint = f"`sluice rewind {pipeline.name} --to 1970-01-01{into_option}` reads again what Kafka still has; a later time reads less"
        raise RefusedError("cannot-replay", f"{pipeline.name} keeps no bad rows: its spec says `bad_rows: drop`", hint)


def condition(text: str) -> str:
    """SQL that selects open bad rows for which `text` is true. Discarded ones are included if `text` names the column `state`."""
    if not text:
        return _of_state(OPEN)
    try:
        checked_condition = expressions.check(text, {column.name: column.type for column in BAD_ROW_COLUMNS})
    except ExpressionError as error:
        fault = error.faults[0]
        raise SluiceError("bad-where", f"--where: {fault.message}", fault.hint) from None
    if checked_condition.type != BOOLEAN:
        raise SluiceError(
            "bad-where", f"--where: `{text}` is {checked_condition.type}, not true or false", "compare it: `code = 'undecodable'`"
        )
    state_condition = f"state IS DISTINCT FROM '{REPLAYED}'" if "state" in checked_condition.sql.reads else _of_state(OPEN)
    return f"{state_condition} AND coalesce({guarded(checked_condition).sql}, false)"


def _of_state(name: str) -> str:
    return f"coalesce(state, '{OPEN}') = '{name}'"


def replay(context: Context, pipeline: Pipeline, where: str, stopped: Callable[[], bool]) -> Iterator[Event]:
    """Replays bad rows in batches, each once."""
    return ended(pipeline, _replayed(context, pipeline, where, stopped))


def _replayed(context: Context, pipeline: Pipeline, where: str, stopped: Callable[[], bool]) -> Iterator[Event]:
    pipeline = context.schemas.current(pipeline)
    since = _position(context, pipeline).batch
    is_begun = False
    while not stopped():
        try:
            batch = next_batch(context, pipeline, lambda current_pipeline: _source(context, current_pipeline, where, since))
        except Exception:
            if not is_begun:  # what fails had something to do
                yield Began(pipeline, 1)
            raise
        if batch is None:
            return
        if not is_begun:
            yield Began(pipeline, batch.read + batch.waiting)
            is_begun = True
        yield BatchDone(pipeline, batch)


def tried(context: Context, pipeline: Pipeline, where: str) -> Trial:
    """The effects of a replay. Nothing is written."""
    pipeline = context.schemas.current(pipeline)
    context.provide_keys(pipeline)
    position = _position(context, pipeline)
    while True:
        try:
            return _tried(context, pipeline, _source(context, pipeline, where, position.batch), position)
        except schema_lookup.UnknownSchemas as unknown:
            pipeline = context.schemas.learn(pipeline, unknown.ids)


def discard(context: Context, pipeline: Pipeline, where: str) -> int:
    """Marks bad rows as discarded, so that no replay tries them, and returns their number."""
    _position(context, pipeline)
    lake = context.lake(pipeline)
    table = lake.find(pipeline.table.bad_rows)
    if table is None:
        return 0
    name = side_tables.side_identifier(pipeline, pipeline.table.bad_rows_table)

    def once() -> int:
        table = lake.load(pipeline.table.bad_rows)
        side_rows.add_columns(lake, table, BAD_ROW_COLUMNS)
        count = int(lake.spark.table(name).where(where).count())
        if count:
            side_rows.change(lake, table, lambda branch: [f"UPDATE {branch} SET state = '{DISCARDED}' WHERE {where}"])
        return count

    return again(pipeline.table.bad_rows, once)


def _source(context: Context, pipeline: Pipeline, where: str, since: int) -> BadRowSource:
    return BadRowSource(pipeline, context.lake(pipeline), context.source(pipeline), where=where, since=since)


def _position(context: Context, pipeline: Pipeline) -> Position:
    """The table's position, after the bad rows of its last batch are published."""
    lake = context.lake(pipeline)
    table = lake.load(pipeline.table.identifier)
    current = state(table) if table is not None else None
    if current is None or current.position is None:
        raise refusals.no_table(pipeline)
    side_tables.roll_forward(lake, pipeline, current.uuid, current.position)
    return current.position


def _tried(context: Context, pipeline: Pipeline, source: BadRowSource, position: Position) -> Trial:
    range_ = source.next(position, source.topic_state())
    if range_ is None:
        return Trial(messages=0, waiting=0, rows=0, filtered=0, bad=())
    messages = source.read(context.spark, range_, position.batch + 1)
    frame = frame_of(messages, pipeline, range_.size, newest_time=position.newest, pins=Pins(measured=measured(pipeline)))
    lake = context.lake(pipeline)
    target = StagingTarget(
        context=context,
        lake=lake,
        pipeline=pipeline,
        attempt="",
        table=lake.load(pipeline.table.identifier),
        reached=None,
        source=source,
        range_=range_,
    )
    with named_errors(pipeline):
        counts = admission.tried(target, frame)
    if counts.unknown_schemas:
        raise schema_lookup.UnknownSchemas(counts.unknown_schemas)
    reasons: Counter[tuple[str, str]] = Counter()
    if counts.carried is not None:
        rows: list[Any] = bad_rows.table_rows(pipeline, position.batch + 1, counts.carried).select("code", "message").collect()
        reasons.update((row["code"], row["message"]) for row in rows)
    bad = tuple((code, message, count) for (code, message), count in reasons.most_common())
    return Trial(messages=range_.size, waiting=range_.waiting, rows=counts.rows, filtered=counts.filtered, bad=bad)
