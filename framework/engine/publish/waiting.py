"""Rows that wait for a row of another table: they are tried again once that table has changed, or their time is over.

They are bad rows with a code of their own, and a try is a replay of them. So each lands once, whatever dies when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from framework.engine.context import Context
from framework.engine.iceberg import metadata, table_state
from framework.engine.publish import pinning
from framework.engine.publish.bad_row_source import BadRowSource
from framework.engine.publish.batch import Batch, next_batch, rows_waiting
from framework.engine.rules import protocol
from framework.model import OPEN, WAITS, Pipeline
from framework.sql.quote import literal

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def count(context: Context, pipeline: Pipeline) -> int:
    """About how many messages and rows wait, without starting Spark; 0: there is nothing to do. Raises a refusal, as a batch would."""
    return rows_waiting(context, pipeline) or int(due(pipeline) is not None)


def due(pipeline: Pipeline) -> str | None:
    """SQL of which waiting rows are tried now; None if none are. Without Spark."""
    joins = [join for join in pipeline.joins if join.within is not None]
    came = _came(pipeline) if joins else []
    if not came:
        return None
    waits = f"coalesce(state, {literal(OPEN)}) = {literal(OPEN)} AND code = {literal(WAITS)}"
    if _joined(pipeline) != _read_last(pipeline):
        return waits
    over = pinning.now() - min(join.within or 0 for join in joins) * 1_000_000
    if min(came) > _EPOCH + timedelta(microseconds=over):
        return None
    return f"{waits} AND timestamp <= timestamp_micros({over}L)"


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


def _came(pipeline: Pipeline) -> list[datetime]:
    """When the messages of waiting rows came to Kafka."""
    table = table_state.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return []
    states = ("state",) if "state" in table.schema().column_names else ()
    rows = table.scan(row_filter=f"code = '{WAITS}'", selected_fields=("timestamp", *states)).to_arrow().to_pylist()
    return [row["timestamp"] for row in rows if row.get("state") in (None, OPEN)]


def _joined(pipeline: Pipeline) -> dict[str, int | None]:
    """The newest snapshots of the tables that are joined."""
    read = {join.source.identifier: metadata.read(join.source.catalog, join.source.identifier) for join in pipeline.joins}
    return {name: table.main["snapshot-id"] if table and table.main else None for name, table in read.items()}


def _read_last(pipeline: Pipeline) -> dict[str, int | None]:
    """Those that the last batch read."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    for snapshot in table.ancestors() if table else ():
        if text := metadata.summary(snapshot).get(protocol.JOINED):
            return {name: id_ for name, id_ in json.loads(text).items() if name != pipeline.table.identifier}
    return {}
