"""The bad rows of a batch, staged for their side table; and batches that bad rows stop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from framework.base.errors import BadRowsStop
from framework.core.context.context import Context
from framework.core.iceberg.lake import TableStore
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.side_tables import append, append_few, open_side_table, side_identifier
from framework.core.rows.bad_rows import table_rows
from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import frame_of
from framework.core.rows.pins import Pins
from framework.core.rules import protocol
from framework.core.rules.protocol import Position, Range, TableState
from framework.core.rules.refusals import Acceptance
from framework.plan import BAD_ROW_COLUMNS, LOST_BYTES, Pipeline
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_LOCAL_ROWS = 1_000  # bad rows: for more, a job takes less time, since Spark compiles it


def stage(
    context: Context,
    lake: TableStore,
    pipeline: Pipeline,
    attempt: str,
    opened: TableState,
    range_: Range,
    counted: BatchCounts,
    pins: Pins,
) -> None:
    """Writes the batch's bad rows to a branch of their table. Bad rows too large for the first pass are read again."""
    assert counted.carried is not None
    side = pipeline.table.bad_rows_table
    table = open_side_table(lake, pipeline, side, opened.uuid)
    main = table.currentSnapshot().snapshotId()
    number = _number(opened)
    lake.branch(table, attempt, main)
    if not counted.too_large:
        is_small = counted.bad <= _MAX_LOCAL_ROWS
        # A projection right above rows of the driver would be computed while Spark plans, uncompiled.
        carried = counted.carried if is_small else counted.carried.coalesce(1)
        rows = table_rows(pipeline, number, carried)
        if not is_small or not append_few(rows, pipeline, table, attempt, opened):
            append(rows, pipeline, side, attempt, opened)
        return
    bad = _read_again(context.source(pipeline).read(context.spark, range_, number), pipeline, opened, range_, pins)
    append(table_rows(pipeline, number, bad), pipeline, side, attempt, opened)
    table.refresh()
    staged_snapshot = table.snapshot(protocol.BRANCH + attempt)
    if int(staged_snapshot.summary().get("added-records") or 0) < counted.bad:
        second_read = context.spark.read.option("versionAsOf", staged_snapshot.snapshotId()).table(
            side_identifier(pipeline, side)
        )
        lake.branch_again(table, attempt, main)
        append(_with_lost(pipeline, number, second_read, counted.carried), pipeline, side, attempt, opened)


def stage_outcomes(
    lake: TableStore,
    pipeline: Pipeline,
    attempt: str,
    opened: TableState,
    range_: Range,
    counted: BatchCounts,
    source: BadRowSource,
    pins: Pins,
) -> None:
    """Writes the outcomes of a replay of bad rows to a branch of their table."""
    side = pipeline.table.bad_rows_table
    table = open_side_table(lake, pipeline, side, opened.uuid)
    number = _number(opened)
    bad = counted.carried
    if bad is None or counted.too_large:
        bad = _read_again(source.read(lake.spark, range_, number), pipeline, opened, range_, pins)
    lake.branch(table, attempt, table.currentSnapshot().snapshotId())
    append(source.outcomes(range_, number, table_rows(pipeline, number, bad)), pipeline, side, attempt, opened)


def _number(opened: TableState) -> int:
    return opened.position.batch + 1 if opened.position else 1


def _read_again(messages: DataFrame, pipeline: Pipeline, opened: TableState, range_: Range, pins: Pins) -> DataFrame:
    """The bad rows of messages that are read once more, with all of their bytes."""
    newest_time = opened.position.newest if opened.position else 0
    return frame_of(messages, pipeline, range_.size, carry=False, newest_time=newest_time, pins=pins).bad


def _with_lost(pipeline: Pipeline, number: int, second_read: DataFrame, carried: DataFrame) -> DataFrame:
    """Adds bad rows whose messages Kafka compacted between the two reads: the first read has all of them but their bytes."""
    from pyspark.sql import functions

    batch_rows = second_read.where(f"batch = {number}")
    same_place = " AND ".join(f"bad.{name} <=> there.{name}" for name in ("topic", "partition", "`offset`", "item"))
    lost_rows = (
        table_rows(pipeline, number, carried)
        .alias("bad")
        .join(batch_rows.alias("there"), functions.expr(same_place), "left_anti")
    )
    lost_message = f"concat(message, {literal(LOST_BYTES)})"
    columns_sql = {column.name: identifier(column.name) for column in BAD_ROW_COLUMNS} | {
        "message": f"IF(value IS NULL, {lost_message}, message)"
    }
    return batch_rows.unionByName(lost_rows.selectExpr(*(f"{sql} AS {identifier(name)}" for name, sql in columns_sql.items())))


def stop(pipeline: Pipeline, opened: TableState, position: Position, counted: BatchCounts) -> None:
    """Refuses a batch with bad rows that are not accepted, if the pipeline has `bad_rows: stop`."""
    if pipeline.bad_rows != "stop" or not counted.bad or counted.carried is None:
        return
    if pipeline.read_tables:
        hint = "correct the spec, or set `bad_rows: quarantine`"
        raise BadRowsStop("bad-rows", f"{counted.bad:,} rows of {pipeline.source_name} are bad", hint)
    bad = counted.carried.select("topic", "partition", "offset", "fault").collect()
    bad_places = [(protocol.partition(row["topic"], row["partition"]), row["offset"], row["fault"]) for row in bad]
    unaccepted = sorted(place for place in bad_places if place[1] >= position.accepted.get(place[0], 0))
    if not unaccepted:
        return
    first_partition, first_offset, number = unaccepted[0]
    fault = pipeline.faults[number]
    below = dict(position.accepted)
    for partition, offset, _ in unaccepted:
        below[partition] = max(below.get(partition, 0), offset + 1)
    noun, verb = ("bad message", "is") if len(unaccepted) == 1 else ("bad messages", "are")
    says = f"the {len(unaccepted)} {noun} of this batch {verb} quarantined in {pipeline.table.bad_rows}"
    raise BadRowsStop(
        "bad-rows",
        f"{len(unaccepted)} {noun}, the first in {first_partition} at offset {first_offset}: {fault.code}: {fault.message}",
        f"`sluice accept {pipeline.name}`: {says}",
        Acceptance(says, replace(position, accepted=below), opened),
    )
