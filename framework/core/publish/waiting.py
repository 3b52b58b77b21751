"""Rows that wait for a row of another table: each is tried again once that table has changed since its last try, or its time is over.

They are bad rows with a code of their own, and a try is a replay of them. So each lands once, whatever dies when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.publish import pinning
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.batch import Batch, next_batch, rows_waiting
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.plan import LOST_BYTES, OPEN, WAITS, Pipeline
from framework.sql.quote import literal

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_OPEN = f"coalesce(state, {literal(OPEN)}) = {literal(OPEN)} AND code = {literal(WAITS)}"
_TRIED = "coalesce(replayed_in, batch)"  # the batch that tried a row last
_MOST_TRIES = 100  # so many are told apart by the times at which their rows are over


@dataclass(frozen=True)
class _Waiting:
    """A row that waits: when its message came, in microseconds, and the batch that tried it last."""

    came: int
    tried: int


@dataclass(frozen=True)
class _Try:
    """What a batch read: the snapshots of the joined tables, and the time in microseconds."""

    tables: Mapping[str, int | None]
    at: int


def count(context: Context, pipeline: Pipeline) -> int:
    """About how many messages and rows wait, without starting Spark; 0: there is nothing to do. Raises a refusal, as a batch would."""
    return rows_waiting(context, pipeline) or int(due(pipeline) is not None)


def due(pipeline: Pipeline) -> str | None:
    """SQL of which waiting rows are tried now; None if none are. Without Spark."""
    spans = [join.within * 1_000_000 for join in pipeline.joins if join.within is not None]
    rows = _waiting(pipeline) if spans else []
    if not rows:
        return None
    tries, tables, now = _tries(pipeline), _newest_snapshots(pipeline), pinning.now()
    # The batches that read what there still is: their rows would find no more, but the time of some may be over since.
    current = {row.tried for row in rows if row.tried in tries and tries[row.tried].tables == tables}
    over = {
        row.tried for row in rows if row.tried in current and any(tries[row.tried].at < row.came + span <= now for span in spans)
    }
    if len(over) > _MOST_TRIES:
        current, over = current - over, set()
    if not over and all(row.tried in current for row in rows):
        return None
    changed = f"{_TRIED} NOT IN ({', '.join(map(str, sorted(current)))})" if current else "true"
    times = (
        f"{_TRIED} = {number} AND timestamp > {_time(tries[number].at - span)} AND timestamp <= {_time(now - span)}"
        for number in sorted(over)
        for span in spans
    )
    return f"{_OPEN} AND ({' OR '.join((changed, *times))})"


def _time(micros: int) -> str:
    return f"timestamp_micros({micros}L)"


def batches(context: Context, pipeline: Pipeline) -> Iterator[Batch]:
    """The batches of waiting rows that are tried now."""
    where = due(pipeline)
    state = table_state.state(pipeline.table) if where else None
    if where is None or state is None or state.position is None:
        return
    since = state.position.batch

    def source(now: Pipeline) -> BadRowSource:
        return BadRowSource(now, context.lake(now), context.source(now), where=where or "", since=since)

    while (batch := next_batch(context, pipeline, source)) is not None:
        yield batch


def _waiting(pipeline: Pipeline) -> list[_Waiting]:
    """The rows that wait; not those of which Kafka has no bytes any more, which cannot be tried."""
    table = table_state.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return []
    newer = [name for name in ("state", "replayed_in") if name in table.schema().column_names]
    fields = ("timestamp", "batch", "message", *newer)
    rows = table.scan(row_filter=f"code = '{WAITS}'", selected_fields=fields).to_arrow().to_pylist()
    return [
        _Waiting((row["timestamp"] - _EPOCH) // timedelta(microseconds=1), row.get("replayed_in") or row["batch"])
        for row in rows
        if row.get("state") in (None, OPEN) and not row["message"].endswith(LOST_BYTES)
    ]


def _newest_snapshots(pipeline: Pipeline) -> dict[str, int | None]:
    """The newest snapshots of the tables that are joined."""
    read = {join.source.identifier: metadata.read(join.source.catalog, join.source.identifier) for join in pipeline.joins}
    return {name: table.main["snapshot-id"] if table and table.main else None for name, table in read.items()}


def _tries(pipeline: Pipeline) -> dict[int, _Try]:
    """What the batches read, by their numbers, as far back as their snapshots are kept."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    tries: dict[int, _Try] = {}
    for summary in map(metadata.summary, table.ancestors() if table else ()):
        if (position := summary.get(protocol.POSITION)) and (text := summary.get(protocol.JOINED)):
            tables = {name: id_ for name, id_ in json.loads(text).items() if name != pipeline.table.identifier}
            tries.setdefault(Position.read(position).batch, _Try(tables, int(summary.get(protocol.TIME, 0))))
    return tries
