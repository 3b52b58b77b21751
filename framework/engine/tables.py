"""A pipeline's table: born with a position, and given the columns that its spec has gained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from framework import types
from framework.engine import bad_rows, protocol, refusals
from framework.engine.context import Context
from framework.engine.lake import Lake
from framework.engine.protocol import Position, TopicState
from framework.errors import BatchError
from framework.plan.model import Column, Pipeline

LAYOUT = {
    # Rows stay in the task that read them: no shuffle, and a file per task and partition.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


def open_table(context: Context, lake: Lake, pipeline: Pipeline) -> Any:
    """The table as it is now; made if it is missing."""
    identifier = pipeline.table.identifier
    table = lake.load(identifier)
    if table is None or table.currentSnapshot() is None:
        bad_rows.refuse_leftovers(lake, pipeline, None)
        bear(context, lake, pipeline)
        table = lake.load(identifier)
    if table is None:
        raise BatchError("table-not-created", f"the table {identifier} could not be made", "run again")
    bad_rows.refuse_leftovers(lake, pipeline, table)
    return _with_columns(lake, pipeline, table)


def bear(context: Context, lake: Lake, pipeline: Pipeline) -> None:
    """Makes the table, with the position from which reading begins: a first batch that fails begins there again, even with
    `start_from: latest`."""
    table = pipeline.table
    topic = context.kafka(pipeline).look(pipeline.topic)
    starts = _starts(context, pipeline, topic)
    first = Position("born", 0, topic.cluster, topic.topic, starts, 0, 0, pipeline.spec)

    def describe(snapshot: int, sequence: int) -> dict[str, str]:
        position = replace(first, snapshot=snapshot, sequence=sequence)
        return {protocol.POSITION: position.text(), protocol.OWNER: refusals.owner(pipeline)}

    properties = {**LAYOUT, "format-version": str(table.format_version), **({"comment": table.doc} if table.doc else {})}
    lake.create(table.identifier, table.columns, table.partition_by, table.sort_by, properties, describe, first)


def _starts(context: Context, pipeline: Pipeline, topic: TopicState) -> dict[int, int]:
    start = pipeline.topic.start_from
    if start == "earliest":
        return dict(topic.starts)
    if start == "latest":
        return dict(topic.ends)
    return context.kafka(pipeline).offsets_at(pipeline.topic, start)


def _with_columns(lake: Lake, pipeline: Pipeline, table: Any) -> Any:
    """The table with the columns that the spec has and it lacks; a column that the spec lacks stays and is null."""
    there = lake.column_types(table)
    other = [column for column in pipeline.table.columns if there.get(column.name, _stored(column.type)) != _stored(column.type)]
    if other:
        changed = ", ".join(f"`{column.name}` is {there[column.name]}, the spec says {column.type}" for column in other)
        raise BatchError(
            "schema-change",
            f"the columns of {pipeline.table.identifier} cannot become those of the spec: {changed}",
            "types of columns stay as they are in this version: write a new column, or another table",
        )
    new: tuple[Column, ...] = tuple(column for column in pipeline.table.columns if column.name not in there)
    if not new:
        return table
    lake.add_columns(table, new)
    return lake.load(pipeline.table.identifier)


def _stored(type_: types.Type) -> str:
    """The type as Iceberg keeps it: it has no integers below 32 bits."""
    return "int" if type_ in (types.TINYINT, types.SMALLINT) else str(type_)
