"""A pipeline's table: created with a position, and changed as its spec changes, as far as Iceberg allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from framework.base import types
from framework.base.errors import BatchError, ColumnsChanged
from framework.core.context.context import Context
from framework.core.iceberg import moves
from framework.core.iceberg.commit import again
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import TableStore
from framework.core.publish import hashing_keys, side_tables
from framework.core.rules import protocol, recorded_moves, refusals
from framework.core.rules.protocol import Partition, TableState, TopicState
from framework.core.spark.java_errors import CommitRefused
from framework.plan import Pipeline
from framework.plan.change import Change, acceptable, changes, hint, refusal_text

LAYOUT = {
    # Rows stay in the task that read them: no shuffle, and a file per task and partition.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "33",  # a version for each batch
}
_ROWS_CHANGE = {f"write.{kind}.mode": "merge-on-read" for kind in ("merge", "update", "delete")}  # no file is rewritten
_WITH_STATISTICS = 100  # columns


def open_table(context: Context, lake: TableStore, pipeline: Pipeline) -> Any:
    """Opens the table: creates it if it is missing, and changes it as the spec has changed."""
    identifier = pipeline.table.identifier
    table = lake.load(identifier)
    if table is None or table.currentSnapshot() is None:
        side_tables.refuse_leftovers(lake, pipeline, None)
        create_table(context, lake, pipeline)
        table = lake.load(identifier)
    if table is None:
        raise BatchError("table-not-created", f"the table {identifier} could not be created", "run again")
    side_tables.refuse_leftovers(lake, pipeline, table)
    return _with_columns(lake, pipeline, _with_properties(context, lake, pipeline, table))


def _with_properties(context: Context, lake: TableStore, pipeline: Pipeline, table: Any) -> Any:
    """Turns off statistics of columns that the spec masks by now, and remembers the keys that hash them; another pipeline's table stays as
    it is. Raises an error if the table knows other keys."""
    if not refusals.is_ours(pipeline, table.properties().get(protocol.OWNER)):
        return table
    wanted = {**_of_masked(pipeline), **hashing_keys.properties(context, pipeline, table.properties())}
    missing = {key: value for key, value in wanted.items() if table.properties().get(key) != value}
    if missing:
        lake.mark(table, missing)
        table.refresh()
    return table


def create_table(
    context: Context,
    lake: TableStore,
    pipeline: Pipeline,
    extra_properties: Mapping[str, str] | None = None,
    accepted: Mapping[Partition, int] | None = None,
) -> None:
    """Creates the table with the position from which reading begins: a first batch that fails begins there again, even with
    `start_from: latest`. Bad rows below the `accepted` offsets stop nothing."""
    table = pipeline.table
    source = context.source(pipeline)
    topic = source.topic_state()
    start_position = replace(protocol.born(topic, source.starts(topic, {}), pipeline.spec), accepted=accepted or {})

    def describe(snapshot: int, sequence: int) -> dict[str, str]:
        position = replace(start_position, snapshot=snapshot, sequence=sequence)
        return {protocol.POSITION: position.text(), protocol.OWNER: refusals.owner(pipeline)}

    properties = {**LAYOUT, "format-version": str(table.format_version), **({"comment": table.doc} if table.doc else {})}
    properties |= {**write_properties(pipeline), **hashing_keys.properties(context, pipeline), **(extra_properties or {})}
    empty = bool(table.states)
    lake.create(table.identifier, table.columns, table.partition_by, table.sort_by, properties, describe, start_position, empty)


def write_properties(pipeline: Pipeline) -> dict[str, str]:
    """The table's properties about how it is written."""
    table = pipeline.table
    return {
        # Readers, and batches that compare rows, open all manifests, a millisecond or two each; Iceberg waits for 100.
        "commit.manifest.min-count-to-merge": "10",
        **(_ROWS_CHANGE if table.rows_change else {}),
        protocol.WRITE: table.words,
        **_of_time(pipeline),
        **_of_masked(pipeline),
    }


def _of_time(pipeline: Pipeline) -> dict[str, str]:
    """The property for statistics of the rows' time, which tell the newest time. Iceberg keeps some by itself for the first columns."""
    is_wide = sum(1 for column in pipeline.table.columns for _ in types.parts(column.type)) > _WITH_STATISTICS
    return {f"write.metadata.metrics.column.{pipeline.event_time}": "full"} if is_wide and pipeline.event_time else {}


def _of_masked(pipeline: Pipeline) -> dict[str, str]:
    """The properties against statistics of masked columns, in lists of files and in files. Hashes are long, and a file has many
    different ones: they need a larger dictionary than Parquet's 2 MiB."""
    column_types = {column.name: column.type for column in pipeline.table.columns}
    # A mask can also drop a field.
    masked_columns = [".".join(path) for path in pipeline.table.masked if _has(column_types[path[0]], path[1:])]
    return {
        **({"write.parquet.dict-size-bytes": str(8 << 20)} if masked_columns else {}),
        **{f"write.metadata.metrics.column.{column}": "none" for column in masked_columns},
        **{f"write.parquet.stats-enabled.column.{column}": "false" for column in masked_columns},
    }


def _has(type_: types.Type, path: tuple[str, ...]) -> bool:
    """Whether a value of the type has a field at the path, if need be in each item of a list or a map."""
    match type_:
        case types.Array():
            return _has(type_.element, path)
        case types.Map():
            return _has(type_.value, path)
        case types.Struct() if path:
            return any(field.name == path[0] and _has(field.type, path[1:]) for field in type_.fields)
    return not path


def join_topics(context: Context, pipeline: Pipeline, opened: TableState, topic: TopicState, attempt: str) -> None:
    """Adds new topics to the table's position, with the offsets at which they begin, in a commit of its own: `latest` would
    mean something else the next time."""
    assert opened.position is not None
    lake = context.lake(pipeline)
    ends = {**opened.position.ends, **context.source(pipeline).starts(topic, opened.position.topics)}
    table = lake.load(pipeline.table.identifier)
    if table is None:
        return
    commit = lake.begin(table)
    current_state = state(commit.table)
    if (current_state.uuid, current_state.main, current_state.position) == (opened.uuid, opened.main, opened.position):
        new_position = replace(
            opened.position, attempt=attempt, batch=opened.position.batch + 1, bad=0, forget=None,
            rewound=False, replay=False, topics=topic.topics, ends=ends,
            snapshot=current_state.main, sequence=current_state.snapshots[current_state.main].sequence,
        )  # fmt: skip
        recorded = commit.table.properties().get(recorded_moves.PROPERTY)
        record = recorded_moves.with_move(recorded, recorded_moves.NEW_TOPIC, new_position, current_state)
        moves.move_position(commit, new_position, {protocol.OWNER: refusals.owner(pipeline), **record})


def _with_columns(lake: TableStore, pipeline: Pipeline, table: Any) -> Any:
    """The table after the changes of its spec, made in one commit, so that readers never see half of them. If one change is not
    allowed, all are refused, and no batch begins."""
    if not _wanted(lake, pipeline, table):
        return table

    def load_current() -> Any:
        table = lake.load(pipeline.table.identifier)
        if table is None:
            raise CommitRefused(f"the table {pipeline.table.identifier} is gone")
        return table

    def once() -> Any:
        table = load_current()
        if missing_changes := _wanted(lake, pipeline, table):
            lake.change(table, missing_changes, pipeline.table)
            table = load_current()
            if _wanted(lake, pipeline, table):
                raise CommitRefused("the changes that the spec asks of it are not all there")
        return table

    return again(pipeline.table.identifier, once, "run again when the other writer is done; nothing was lost")


def _wanted(lake: TableStore, pipeline: Pipeline, table: Any) -> list[Change]:
    """The changes that the spec asks of a table; none for another pipeline's table, which the next check refuses."""
    current = lake.existing(table)
    if not refusals.is_ours(pipeline, current.owner):
        return []
    spec_changes = changes(pipeline, current)
    if any(not change.allowed for change in spec_changes):
        raise schema_change(pipeline, spec_changes)
    return [change for change in spec_changes if change.kind not in ("drop", "narrow")]  # these leave the column as it is


def accept_changes(lake: TableStore, pipeline: Pipeline, changes_: tuple[Change, ...]) -> None:
    """Makes the refused changes and records them as accepted, in one commit."""
    table = lake.load(pipeline.table.identifier)
    current = lake.existing(table) if table is not None else None
    if current is None or changes(pipeline, current) != changes_:
        raise CommitRefused
    refused_changes = [change for change in changes_ if not change.allowed]
    accepted = json.dumps(sorted({*current.accepted, *(change.key for change in refused_changes)}))
    lake.change(
        table, [change for change in refused_changes if change.kind != "schema"], pipeline.table, {protocol.ACCEPTED: accepted}
    )


def schema_change(pipeline: Pipeline, spec_changes: tuple[Change, ...]) -> ColumnsChanged:
    refused_changes = [change for change in spec_changes if not change.allowed]
    message = f"{pipeline.table.identifier} is not what the spec says: {refusal_text(refused_changes)}"
    return ColumnsChanged(
        "schema-change",
        message,
        hint(refused_changes, spec_changes, pipeline.name),
        spec_changes if acceptable(spec_changes) else None,
    )
