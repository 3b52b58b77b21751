"""Tables that pipelines read: the pipeline that writes one, and the part of it that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from framework.base.errors import Problem, Where
from framework.documents.draft import Draft, unknown
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.documents.write_mode import write_mode
from framework.plan import (
    FROM_COLUMNS,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    VERSION,
    Column,
    DependentTable,
    Keyed,
    Pipeline,
    Rule,
    Step,
    TableChanges,
)
from framework.plan.totals import Totals

_OWN_COLUMNS = {column.name for column in (*KAFKA_COLUMNS, KAFKA_TOPIC, *FROM_COLUMNS)}


def writer(draft: Draft, name: str, where: Where, open_names: Sequence[str]) -> WrittenPipeline | None:
    """Returns the pipeline that writes the table; if there is none, reports a problem and returns None."""
    pipelines = draft.written.of(WrittenPipeline)
    writers = {
        pipeline.into.table: pipeline
        for pipeline in pipelines
        if "into" not in pipeline.gaps and "table" not in pipeline.into.gaps
    }
    spec = writers.get(name)
    if spec is None:
        # A document that cannot be read may write the table.
        if len(writers) == sum(document.kind == "pipeline" for document in draft.written.documents):
            other_tables = [table for table, pipeline in writers.items() if pipeline.name not in open_names]
            unknown(draft, "table", name, where, other_tables)
        return None
    if spec.name in open_names:
        circle = " → ".join([*open_names[open_names.index(spec.name) :], spec.name])
        hint = "one of them must do without the other's table; what needs both can be a pipeline of its own"
        draft.problems.append(Problem(where, "table-cycle", f"these pipelines read each other's tables: {circle}", hint))
        return None
    return spec


def plan_source(into: WrittenInto, pipeline: Pipeline) -> TableChanges:
    """Returns the table of this pipeline as the source of another one."""
    table = pipeline.table
    kafka = tuple(column for column in table.columns if column in pipeline.kafka_columns and column.name.startswith("_kafka_"))
    columns = tuple(column for column in table.readable if column not in kafka and column.name not in _OWN_COLUMNS)
    write = table.write
    return TableChanges(
        pipeline=pipeline.name, catalog=table.catalog, identifier=table.identifier, columns=columns, kafka=kafka,
        reads=_reads(into, rows_change(pipeline)), rows_change=rows_change(pipeline),
        by_value=write.whole or table.format_version < 3, keys=table.keys,
        event_time=pipeline.event_time,
        partitions=tuple(field.column for field in table.partition_by if field.transform == "identity"),
    )  # fmt: skip


def looked_up(pipeline: Pipeline) -> TableChanges:
    """Returns the table of this pipeline as a table in which a step of another one looks rows up."""
    table = pipeline.table
    current = VERSION if table.write.versions else ()
    columns = tuple(column for column in table.readable if column.name not in (*_OWN_COLUMNS, *current))
    return TableChanges(
        pipeline=pipeline.name, catalog=table.catalog, identifier=table.identifier, columns=columns, kafka=(),
        rows_change=rows_change(pipeline), keys=table.keys, versions=bool(current),
    )  # fmt: skip


def rows_change(pipeline: Pipeline) -> bool:
    """Whether the pipeline also changes and deletes rows of its table."""
    return pipeline.table.write.rows_change


def _reads(into: WrittenInto, changes: bool) -> Literal["all", "added", "changes", "commits"]:
    write = write_mode(into.write)
    if write.whole:
        return "all"
    if not (write.by_key or write.groups) or not changes:
        return "added"
    return "commits" if write.versions else "changes"


def problems(spec: WrittenPipeline, pipeline: Pipeline) -> Iterator[Problem]:
    """The problems of reading the rows of this pipeline's table."""
    into, name, write = spec.into, pipeline.table.identifier, write_mode(spec.into.write)
    if write.whole:
        return
    if into.deletes == "tombstones":
        hint = f"remove `deletes`: rows that are deleted in {name} are deleted here" if rows_change(pipeline) else "remove it"
        yield Problem(into.place("deletes"), "bad-deletes", "a table has no tombstones", hint)
    if not rows_change(pipeline):
        if into.deletes == "ignore":
            yield Problem(
                into.key_place("deletes"), "unused-key", f"`deletes` has no effect: no row of {name} is deleted", "remove it"
            )
    elif write.groups:
        if into.late_after is not None:
            message = f"rows of {name} are also changed and deleted, at any time: no window of theirs closes"
            yield Problem(into.key_place("late_after"), "unused-key", message, "remove `late_after`")
        if into.deletes == "ignore":
            message = f"`deletes` has no effect with `write: {into.write}`: rows that are deleted in {name} leave the totals"
            yield Problem(into.key_place("deletes"), "unused-key", message, "remove it")
    elif not write.by_key and into.deletes != "ignore":
        message = f"`write: {into.write}` only adds rows, and rows of {name} are also changed and deleted"
        hint = "`write: upsert` with `keys` follows them; with `deletes: ignore` each new state of a row becomes a row"
        yield Problem(into.place("write"), "rows-change", message, hint)
    elif write.by_key and into.order_by:
        message = f"the commits of {name} say which of its rows is newer"
        yield Problem(into.key_place("order_by"), "bad-order", message, "remove `order_by`")


def with_readers(pipelines: Sequence[Pipeline]) -> Iterator[Pipeline]:
    """Returns the pipelines, each with the readers of its table, and whether others look rows up in it."""
    pinned_names = {table.pipeline for reader in pipelines for table in reader.looked_up}
    for pipeline in pipelines:
        dependents = (
            DependentTable(
                reader.table.catalog, reader.table.identifier, reader.table.second.identifier, read_table.reads == "commits"
            )
            for reader in pipelines
            for read_table in reader.read_tables
            if read_table.pipeline == pipeline.name
        )
        yield replace(pipeline, readers=tuple(dependents), is_pinned=pipeline.name in pinned_names)


def order_columns(into: WrittenInto, source: TableChanges) -> tuple[Column, ...]:
    """Returns the columns that order rows of the source, if they are written by keys or groups."""
    write = write_mode(into.write)
    if write.groups:
        return FROM_COLUMNS[2:]
    if not write.by_key:
        return ()
    return FROM_COLUMNS[{"all": 4, "added": 2, "changes": 1, "commits": 0}[source.reads] :]


def with_old_rows(source: TableChanges, rule: Rule, steps: Sequence[Step]) -> TableChanges:
    """Returns the source with its deleted rows; with the rows before a change, too, if a change can move a row to another key."""
    if source.reads not in ("changes", "commits"):
        return source
    if isinstance(rule, Totals):
        return replace(source, old="all")
    if not isinstance(rule, Keyed) or not rule.deletes:
        return source
    can_leave = any(step.keep or step.each or step.faults for step in steps)
    can_leave = can_leave or any(name in dict(step.assign) for step in steps for name in rule.keys)
    can_leave = can_leave or not set(rule.keys) <= set(source.keys)
    return replace(source, old="all" if can_leave else "deleted")
