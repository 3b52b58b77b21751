"""Side tables: tables that a pipeline keeps next to its own, to which each batch appends. Bad rows are the first of them.

A side table's rows carry the number of their batch. They are staged on a branch of it by the batch's attempt, and joined to its main
once the table's commit is done.
Guarantee: the table's commit alone decides. Rows that a dead batch did not join, the next batch joins before anything else.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from framework.base.errors import BatchError
from framework.core.iceberg import moves
from framework.core.iceberg.commit import again
from framework.core.iceberg.lake import TableStore
from framework.core.publish import side_rows
from framework.core.rules import protocol, refusals
from framework.core.rules.protocol import Position, TableState
from framework.core.spark.reading_errors import named_errors
from framework.plan import Pipeline, SideTable
from framework.sql.quote import identifier

_OWNER_UUID = protocol.OF


def side_identifier(pipeline: Pipeline, side: SideTable) -> str:
    return identifier(pipeline.table.catalog.name, *side.identifier.split("."))


def open_side_table(lake: TableStore, pipeline: Pipeline, side: SideTable, uuid: str) -> Any:
    """The side table of the table with this uuid; created if it is missing."""
    table = lake.load(side.identifier)
    if table is None:
        properties = {"format-version": "2", "write.metadata.delete-after-commit.enabled": "true"}
        lake.create(side.identifier, side.columns, (), (), properties, lambda *_: {_OWNER_UUID: uuid})
        table = lake.load(side.identifier)
    if table is None:
        raise BatchError("table-not-created", f"the table {side.identifier} could not be created", "run again")
    if table.properties().get(_OWNER_UUID) != uuid:
        raise refusals.leftover_bad_rows(pipeline)
    side_rows.add_columns(lake, table, side.columns)
    return table


def append(rows: Any, pipeline: Pipeline, side: SideTable, attempt: str, opened: TableState | None = None) -> None:
    """Writes rows to the attempt's branch. `opened` is the pipeline's table as the attempt found it."""
    writer = rows.writeTo(f"{side_identifier(pipeline, side)}.`branch_{protocol.BRANCH}{attempt}`")
    for key, value in _summary(attempt, opened).items():
        writer = writer.option(f"snapshot-property.{key}", value)
    with named_errors(pipeline):
        writer.append()


def append_few(rows: Any, pipeline: Pipeline, table: Any, attempt: str, opened: TableState) -> bool:
    """Writes a few rows of the driver to the attempt's branch, without a job. Returns whether that was possible."""
    local_rows = rows.sparkSession._jvm.sluice.LocalRows
    with named_errors(pipeline):
        return bool(local_rows.append(rows._jdf, table, protocol.BRANCH + attempt, _summary(attempt, opened)))


def _summary(attempt: str, opened: TableState | None) -> dict[str, str]:
    return {protocol.ATTEMPT: attempt, **({protocol.BASE: str(opened.last_sequence)} if opened else {})}


def roll_forward(lake: TableStore, pipeline: Pipeline, uuid: str, position: Position) -> None:
    """Publishes the side rows of the last published batch, unless that is done; deletes the rows of batches that are read again."""
    for side in pipeline.table.side_tables if position.is_followed else ():
        once = partial(_roll_forward, lake, side.identifier, uuid, position)
        again(side.identifier, once, "they are kept, and the next run publishes them first", "bad-rows-not-published")


def _roll_forward(lake: TableStore, name: str, uuid: str, position: Position) -> None:
    table = lake.find(name)
    if table is None:
        return
    if position.replay:
        side_rows.settle(lake, table, position)
    else:
        moves.join(lake, table, position.attempt)
    # The numbers are those of one table's batches; a later table by this name counts again.
    if position.forget is not None and table.properties().get(_OWNER_UUID) == uuid:
        table.refresh()
        side_rows.forget(lake, table, position)


def copy_batches(
    lake: TableStore, pipeline: Pipeline, second: Pipeline, attempt: str, uuid: str, number: int, last_batch: int
) -> int:
    """Stages the rows that a rebuild's batches appended to its side tables, as one batch. Returns their number."""
    total = 0
    for side, second_side in zip(pipeline.table.side_tables, second.table.side_tables, strict=True):
        if lake.find(second_side.identifier) is None:
            continue
        rows = lake.spark.table(side_identifier(second, second_side)).where(f"batch <= {last_batch}")
        count = int(rows.count())
        if count:
            table = open_side_table(lake, pipeline, side, uuid)
            lake.branch(table, attempt, table.currentSnapshot().snapshotId())
            names = [identifier(column.name) for column in side.columns[1:]]
            append(rows.selectExpr(f"{number} AS batch", *names), pipeline, side, attempt)
        total += count
    return total


def refuse_leftovers(lake: TableStore, pipeline: Pipeline, table: Any | None) -> None:
    """Refuses side tables of a predecessor of the table, which was dropped: a new table reads their messages again. A process asks once
    for each table: another one of the same name has another uuid."""
    uuid = None if table is None else str(table.uuid())
    if uuid in lake.own_sides:
        return
    for side in pipeline.table.side_tables:
        side_table = lake.find(side.identifier)
        if side_table is not None and (table is None or side_table.properties().get(_OWNER_UUID) != uuid):
            raise refusals.leftover_bad_rows(pipeline)
    if uuid is not None:
        lake.own_sides.add(uuid)


def begin_again(lake: TableStore, pipeline: Pipeline) -> None:
    """Empties the side tables of a dropped table, so that the current table can use them."""
    for side in pipeline.table.side_tables:
        side_table = lake.find(side.identifier)
        if side_table is None:
            continue
        commit = lake.begin(side_table)
        table = lake.load(
            pipeline.table.identifier
        )  # after the commit began: the table that is checked is the one that is emptied
        if table is not None and commit.table.properties().get(_OWNER_UUID) != str(table.uuid()):
            moves.empty(lake, commit, {_OWNER_UUID: str(table.uuid()), protocol.SETTLED: "0"})
