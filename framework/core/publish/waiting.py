"""Rows that wait for a row of another table: each is tried again once that table has changed since its last try, or its time is over.

They are bad rows with a code of their own, and a try is a replay of them. So each lands once, whatever dies when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from framework.base.clock import micros
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.main_line import main_line
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.batch import Backlog, Batch, next_batch, source_backlog
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.plan import LOST_BYTES, OPEN, WAITS, Pipeline
from framework.sql.quote import literal

_OPEN = f"coalesce(state, {literal(OPEN)}) = {literal(OPEN)} AND code = {literal(WAITS)}"
_TRIED = "coalesce(replayed_in, batch)"  # the batch that tried a row last
_MOST_TRIES = 100  # above this many batches with expired rows, all their rows are tried again


@dataclass(frozen=True)
class _Waiting:
    """A row that waits: the time of its message in microseconds, and the batch that tried it last."""

    time: int
    last_batch: int


@dataclass(frozen=True)
class _Try:
    """The inputs of a batch's joins: the snapshots of the joined tables, and the time in microseconds."""

    tables: Mapping[str, int | None]
    time: int


def backlog(context: Context, pipeline: Pipeline) -> Backlog:
    """Counts what waits, in the source and for rows of joined tables, without starting Spark. Raises a refusal, as a batch would."""
    waiting = source_backlog(context, pipeline)
    return waiting if waiting.rows else replace(waiting, rows=int(due(pipeline, context.clock()) is not None))


def due(pipeline: Pipeline, time: datetime) -> str | None:
    """SQL of whether a waiting row is tried now; None if none is. Needs no Spark."""
    spans = [join.within * 1_000_000 for join in pipeline.joins if join.within is not None]
    rows = _waiting(pipeline) if spans else []
    if not rows:
        return None
    tries, tables, time_micros = _tries(pipeline), _newest_snapshots(pipeline), micros(time)
    # The batches that read the current snapshots: a new try would find no other matches, but the time of some rows may be over since.
    current_tries = {row.last_batch for row in rows if row.last_batch in tries and tries[row.last_batch].tables == tables}
    expired_tries = {
        row.last_batch
        for row in rows
        if row.last_batch in current_tries and any(tries[row.last_batch].time < row.time + span <= time_micros for span in spans)
    }
    if len(expired_tries) > _MOST_TRIES:
        current_tries, expired_tries = current_tries - expired_tries, set()
    if not expired_tries and all(row.last_batch in current_tries for row in rows):
        return None
    changed_sql = f"{_TRIED} NOT IN ({', '.join(map(str, sorted(current_tries)))})" if current_tries else "true"
    times = (
        f"{_TRIED} = {number} AND timestamp > {_time(tries[number].time - span)} AND timestamp <= {_time(time_micros - span)}"
        for number in sorted(expired_tries)
        for span in spans
    )
    return f"{_OPEN} AND ({' OR '.join((changed_sql, *times))})"


def _time(micros: int) -> str:
    return f"timestamp_micros({micros}L)"


def batches(context: Context, pipeline: Pipeline) -> Iterator[Batch]:
    """The batches of waiting rows that are tried now."""
    condition = due(pipeline, context.clock())
    state = table_state.state(pipeline.table) if condition else None
    if condition is None or state is None or state.position is None:
        return
    last_batch = state.position.batch

    def source(pinned_pipeline: Pipeline) -> BadRowSource:
        return BadRowSource(
            pinned_pipeline,
            context.lake(pinned_pipeline),
            context.source(pinned_pipeline),
            where=condition or "",
            since=last_batch,
        )

    while (batch := next_batch(context, pipeline, source)) is not None:
        yield batch


def _waiting(pipeline: Pipeline) -> list[_Waiting]:
    """The rows that wait, without those whose bytes Kafka no longer has, which cannot be tried."""
    table = table_state.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return []
    state_columns = [name for name in ("state", "replayed_in") if name in table.schema().column_names]
    fields = ("timestamp", "batch", "message", *state_columns)
    rows = table.scan(row_filter=f"code = '{WAITS}'", selected_fields=fields).to_arrow().to_pylist()
    return [
        _Waiting(micros(row["timestamp"]), row.get("replayed_in") or row["batch"])
        for row in rows
        if row.get("state") in (None, OPEN) and not row["message"].endswith(LOST_BYTES)
    ]


def _newest_snapshots(pipeline: Pipeline) -> dict[str, int | None]:
    """The newest snapshots of the tables that are joined."""
    tables = {join.source.identifier: metadata.read(join.source.catalog, join.source.identifier) for join in pipeline.joins}
    return {name: table.main["snapshot-id"] if table and table.main else None for name, table in tables.items()}


def _tries(pipeline: Pipeline) -> dict[int, _Try]:
    """The inputs of each batch's joins, by its number, as far back as the table has their snapshots."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    tries: dict[int, _Try] = {}
    for summary in map(metadata.summary, main_line(table) if table else ()):
        if (position := summary.get(protocol.POSITION)) and (text := summary.get(protocol.JOINED)):
            tables = {name: id_ for name, id_ in json.loads(text).items() if name != pipeline.table.identifier}
            tries.setdefault(Position.read(position).batch, _Try(tables, int(summary.get(protocol.TIME, 0))))
    return tries
