"""Bad rows: staged beside the table by the same attempt, brought to their own table once the table's commit is done.

Guarantee: the table's commit alone decides. What it had no time to bring over, the next batch brings over before anything else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from framework.engine.context import Context
from framework.engine.iceberg.lake import Lake
from framework.engine.rules import protocol, refusals
from framework.engine.rules.protocol import Position, Range, TableState
from framework.engine.rules.refusals import Acceptance
from framework.engine.spark import row_frame
from framework.engine.spark.causes import not_taken
from framework.engine.spark.java_errors import Refused, Unknown
from framework.engine.spark.reading_errors import named_errors
from framework.errors import BadRowsStop, BatchError
from framework.model import Column, Pipeline
from framework.sql.quote import identifier
from framework.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, Array, Field, Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF = protocol.OF
_HEADERS = Array(Struct((Field("key", STRING), Field("value", BINARY))))
COLUMNS = (
    Column("batch", INT, "The batch that found it"),
    Column("stage", STRING, "Where it failed: value, key, headers, or the step"),
    Column("code", STRING, "What is wrong, as a code"),
    Column("message", STRING, "What is wrong, in words"),
    Column("item", STRING, "Which row of the message, counted from 1, where a list was taken apart; else null"),
    Column("topic", STRING, "Kafka topic"),
    Column("partition", INT, "Kafka partition"),
    Column("offset", BIGINT, "Kafka offset"),
    Column("timestamp", TIMESTAMP, "Kafka timestamp"),
    Column("headers", _HEADERS, "Kafka headers"),
    Column("schema_id", INT, "The id of the message's schema in the registry"),
    Column("key", BINARY, "The message's key, as it is"),
    Column("value", BINARY, "The message's value, as it is"),
)
_TRIES = 5


def stage(
    context: Context, lake: Lake, pipeline: Pipeline, attempt: str, opened: TableState, range_: Range, counted: row_frame.Counted
) -> None:
    """Writes the batch's bad rows to a branch of their table. Those too large to travel with the first pass are read again."""
    assert counted.carried is not None
    table = _own(lake, pipeline, opened.uuid)
    main = table.currentSnapshot().snapshotId()
    number = opened.position.batch + 1 if opened.position else 1
    lake.branch(table, attempt, main)
    if not counted.too_large:
        _append(row_frame.bad_rows(pipeline, number, counted.carried), pipeline, attempt)
        return
    messages = context.source(pipeline).read(context.spark, range_)
    bad = row_frame.frame(messages, pipeline, range_.size, carry=False).bad
    _append(row_frame.bad_rows(pipeline, number, bad), pipeline, attempt)
    table.refresh()
    written = table.snapshot(protocol.BRANCH + attempt)
    if int(written.summary().get("added-records") or 0) < counted.bad:
        again = context.spark.read.option("versionAsOf", written.snapshotId()).table(_quoted(pipeline))
        lake.branch_again(table, attempt, main)
        _append(_with_lost(pipeline, number, again, counted.carried), pipeline, attempt)


def _with_lost(pipeline: Pipeline, number: int, again: DataFrame, carried: DataFrame) -> DataFrame:
    """With bad rows whose messages Kafka compacted between the two reads: of these the first one knows all but their bytes."""
    from pyspark.sql import functions

    ours = again.where(f"batch = {number}")
    place = " AND ".join(f"bad.{name} <=> there.{name}" for name in ("topic", "partition", "`offset`", "item"))
    lost = (
        row_frame.bad_rows(pipeline, number, carried).alias("bad").join(ours.alias("there"), functions.expr(place), "left_anti")
    )
    said = "concat(message, '; Kafka compacted the message before its bytes were kept')"
    kept = {column.name: identifier(column.name) for column in COLUMNS} | {"message": f"IF(value IS NULL, {said}, message)"}
    return ours.unionByName(lost.selectExpr(*(f"{sql} AS {identifier(name)}" for name, sql in kept.items())))


def take_over(
    context: Context, lake: Lake, pipeline: Pipeline, second: Pipeline, attempt: str, opened: TableState, number: int, up_to: int
) -> int:  # fmt: skip
    """Writes the bad rows of a rebuild's batches to a branch of the table's own, as those of one batch; how many they are."""
    if lake.find(second.table.bad_rows) is None:
        return 0
    there = context.spark.table(_quoted(second)).where(f"batch <= {up_to}")
    count = there.count()
    if count:
        table = _own(lake, pipeline, opened.uuid)
        lake.branch(table, attempt, table.currentSnapshot().snapshotId())
        names = [column.name for column in COLUMNS if column.name != "batch"]
        _append(there.selectExpr(f"{number} AS batch", *map(identifier, names)), pipeline, attempt)
    return int(count)


def _own(lake: Lake, pipeline: Pipeline, uuid: str) -> Any:
    """The table of bad rows; made if it is missing."""
    identifier = pipeline.table.bad_rows
    table = lake.load(identifier)
    if table is None:
        lake.create(identifier, COLUMNS, (), (), {"format-version": "2"}, lambda *_: {OF: uuid})
        table = lake.load(identifier)
    if table is None:
        raise BatchError("table-not-created", f"the table {identifier} could not be made", "run again")
    if table.properties().get(OF) != uuid:
        raise refusals.leftovers(pipeline)
    return table


def _append(bad: Any, pipeline: Pipeline, attempt: str) -> None:
    writer = bad.writeTo(f"{_quoted(pipeline)}.`branch_{protocol.BRANCH}{attempt}`")
    with named_errors(pipeline):
        writer.option(f"snapshot-property.{protocol.ATTEMPT}", attempt).append()


def _quoted(pipeline: Pipeline) -> str:
    return identifier(pipeline.table.catalog.name, *pipeline.table.bad_rows.split("."))


def roll_forward(lake: Lake, pipeline: Pipeline, uuid: str, position: Position) -> None:
    """Brings the bad rows of the last published batch to their table, if that has not been done; forgets what is read again."""
    cause = ""
    for _ in range(_TRIES):
        if not position.bad and position.forget is None:
            return
        table = lake.find(pipeline.table.bad_rows)
        if table is None:
            return
        try:
            lake.join(table, position.attempt)
            if position.forget is not None:
                transaction = lake.begin(table)
                # The numbers are those of one table's batches; a later table by this name counts again.
                if transaction.table().properties().get(OF) == uuid:
                    lake.delete_batches(transaction, *position.forget)
        except Refused as refused:
            if "some, but not all" in str(refused) and position.forget is not None:
                raise _compacted(pipeline, position.forget) from None
            cause = str(refused)
            continue
        except Unknown as unknown:
            cause = str(unknown)
            continue  # doing it again finds out
        return
    said = f"the catalog did not take the commit to {pipeline.table.bad_rows} in {_TRIES} tries"
    raise not_taken("bad-rows-not-published", said, cause, "they are kept and published first of all by the next run")


def stop(pipeline: Pipeline, opened: TableState, position: Position, counted: row_frame.Counted) -> None:
    """With `bad_rows: stop`, refuses a batch with bad rows that nobody has accepted."""
    if pipeline.bad_rows != "stop" or not counted.bad or counted.carried is None:
        return
    if pipeline.source:
        hint = "correct the spec, or let it go on by `bad_rows: quarantine`"
        raise BadRowsStop("bad-rows", f"{counted.bad:,} rows of {pipeline.source.identifier} are bad", hint)
    bad = counted.carried.select("topic", "partition", "offset", "fault").collect()
    found = [(protocol.partition(row["topic"], row["partition"]), row["offset"], row["fault"]) for row in bad]
    fresh = sorted(each for each in found if each[1] >= position.accepted.get(each[0], 0))
    if not fresh:
        return
    where, offset, number = fresh[0]
    fault = pipeline.faults[number]
    below = dict(position.accepted)
    for each, at, _ in fresh:
        below[each] = max(below.get(each, 0), at + 1)
    noun, are = ("bad message", "is") if len(fresh) == 1 else ("bad messages", "are")
    says = f"the {len(fresh)} {noun} of this batch {are} quarantined in {pipeline.table.bad_rows}"
    raise BadRowsStop(
        "bad-rows",
        f"{len(fresh)} {noun}, the first in {where} at offset {offset}: {fault.code}: {fault.message}",
        f"`sluice accept {pipeline.name}`: {says}",
        Acceptance(says, replace(position, accepted=below), opened),
    )


def refuse_leftovers(lake: Lake, pipeline: Pipeline, table: Any | None) -> None:
    """A table that was dropped and made anew does not share the bad rows of its predecessor: their messages are read again."""
    left = lake.find(pipeline.table.bad_rows)
    if left is None or (table is not None and left.properties().get(OF) == str(table.uuid())):
        return
    raise refusals.leftovers(pipeline)


def _compacted(pipeline: Pipeline, batches: tuple[int, int]) -> BatchError:
    above, up_to = batches
    return BatchError(
        "bad-rows-compacted",
        f"bad rows that are read again share files with others: {pipeline.table.bad_rows} was compacted",
        f"delete them by Spark, `DELETE FROM {pipeline.table.bad_rows} WHERE batch > {above} AND batch <= {up_to}`, and run again",
    )


def begin_anew(lake: Lake, pipeline: Pipeline) -> None:
    """Bad rows of a former table go, and those of the table that is there now may come."""
    left = lake.find(pipeline.table.bad_rows)
    if left is None:
        return
    transaction = lake.begin(left)
    table = lake.load(pipeline.table.identifier)  # after the transaction began: what is judged then is what is emptied
    if table is not None and transaction.table().properties().get(OF) != str(table.uuid()):
        lake.empty(transaction, {OF: str(table.uuid())})
