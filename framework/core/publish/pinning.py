"""Pins a batch to the newest snapshots when it begins: of the tables in which it looks rows up, and of its own, on which it measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from framework.base.clock import micros
from framework.base.errors import SourceMissing
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.metadata import Metadata
from framework.core.rows import moments
from framework.core.sources import commits
from framework.core.sources.commits import Snapshot
from framework.core.spark.causes import catalog_failed
from framework.plan import Bounds, Lookup, Pipeline, SetExpectation, TableChanges

if TYPE_CHECKING:
    from pyarrow import RecordBatchReader


def pinned(pipeline: Pipeline, moment: datetime) -> Pipeline:
    """The pipeline with steps and expectations that read the current snapshots."""
    if pipeline.sets:
        pipeline = replace(pipeline, sets=tuple(_pinned_expectation(expectation, pipeline) for expectation in pipeline.sets))
    if not pipeline.joins and not pipeline.bounds:
        return pipeline
    pipeline = measured(pipeline)
    steps = (replace(step, join=step.join and _pinned_join(step.join, pipeline, moment)) for step in pipeline.steps)
    return replace(pipeline, steps=tuple(steps))


def _pinned_expectation(expectation: SetExpectation, pipeline: Pipeline) -> SetExpectation:
    """The expectation with the current snapshot of the table to which it refers. A table that does not exist yet has no values, which is
    an error where the batch has to stop."""
    if expectation.of is None:
        return expectation
    try:
        return replace(expectation, snapshot=_main(expectation.of, pipeline)["snapshot-id"])
    except SourceMissing:
        if expectation.otherwise == "stop":
            raise
        return expectation


def measured(pipeline: Pipeline) -> Pipeline:
    """The pipeline with moving bounds that are measured on the current snapshot of its own table."""
    if not pipeline.bounds:
        return pipeline
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    steps = (
        replace(step, bounds=tuple(_measured_on(bounds, table, pipeline) for bounds in step.bounds)) for step in pipeline.steps
    )
    return replace(pipeline, steps=tuple(steps))


def _pinned_join(join: Lookup, pipeline: Pipeline, moment: datetime) -> Lookup:
    main = _main(join.source, pipeline)
    now_micros = None if join.within is None else micros(moment)
    return replace(join, snapshot=main["snapshot-id"], rows=metadata.rows(metadata.summary(main)), now=now_micros)


def _main(source: TableChanges, pipeline: Pipeline) -> Snapshot:
    """The newest snapshot of a table in which rows are looked up."""
    return commits.current(pipeline, source, "in which {} looks rows up")[1]


def _measured_on(bounds: Bounds, table: Metadata | None, pipeline: Pipeline) -> Bounds:
    """The bounds, measured on the table as it is now; unchanged where it has no such columns."""
    column = pipeline.event_time
    if table is None or table.main is None or not {bounds.column, *bounds.per, column} <= table.columns_of(table.main):
        return bounds
    try:
        newest_time = metadata.newest_time(table, column) if column else None
    except (OSError, ValueError) as error:
        name = pipeline.table.identifier
        raise catalog_failed("table-unreadable", f"the newest time in {name} cannot be read", str(error), "") from None
    newest_micros = None if newest_time is None else micros(newest_time)
    measured_bounds = replace(
        bounds, snapshot=table.main["snapshot-id"], newest_time=newest_micros, since=frozenset(_only_added(table))
    )
    _add_rows(measured_bounds, pipeline)
    return measured_bounds


def _add_rows(bounds: Bounds, pipeline: Pipeline) -> None:
    """Counts the rows that came since the last batch, while this one is prepared."""
    since = moments.cached_snapshot(bounds, pipeline)
    if since is not None:
        moments.add(bounds, pipeline, lambda: _rows_since(since, bounds, pipeline))


def _rows_since(since: int, bounds: Bounds, pipeline: Pipeline) -> RecordBatchReader | None:
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    if table is None:
        return None
    rows = table.incremental_append_scan(
        from_snapshot_id_exclusive=since, to_snapshot_id_inclusive=bounds.snapshot,
        selected_fields=(*bounds.per, bounds.column, pipeline.event_time or ""),
    )  # fmt: skip
    return rows.to_arrow_batch_reader()


def _only_added(table: Metadata) -> Iterator[int]:
    """The newest snapshots, down to the last one since which rows were only added."""
    for snapshot in table.ancestors():
        yield snapshot["snapshot-id"]
        if metadata.summary(snapshot).get("operation") not in ("append", "replace"):
            return
