"""Pins a batch to the newest snapshots when it begins: of the tables in which it looks rows up, and of its own, on which it measures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from framework.base.clock import micros
from framework.base.errors import SourceMissing
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.metadata import Metadata
from framework.core.rows import moments
from framework.core.rows.pins import Measured, PinnedTable, Pins, key_of
from framework.core.sources import commits
from framework.core.spark.causes import catalog_failed
from framework.plan import Bounds, Pipeline, TableChanges

if TYPE_CHECKING:
    from pyarrow import RecordBatchReader


def pinned(pipeline: Pipeline, moment: datetime) -> Pins:
    """The pins of a batch of the pipeline that begins now."""
    tables = {key_of(join.source): _newest_of(join.source, pipeline) for join in pipeline.joins}
    for expectation in pipeline.sets:
        if expectation.of is not None and key_of(expectation.of) not in tables:
            try:
                tables[key_of(expectation.of)] = _newest_of(expectation.of, pipeline)
            except SourceMissing:  # a table that does not exist yet has no values: an error where the batch has to stop
                if expectation.otherwise == "stop":
                    raise
    return Pins(tables, measured(pipeline), micros(moment))


def measured(pipeline: Pipeline) -> dict[Bounds, Measured]:
    """The pipeline's moving bounds, measured on its own table as it is now, where it has such columns."""
    column, bounds_of_steps = pipeline.event_time, pipeline.bounds
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier) if bounds_of_steps else None
    if table is None or table.main is None:
        return {}
    columns = table.columns_of(table.main)
    measurable_bounds = [bounds for bounds in bounds_of_steps if {bounds.column, *bounds.per, column} <= columns]
    newest_time = _newest_time(table, pipeline) if measurable_bounds else None
    snapshots = frozenset(_only_added(table))
    all_measured = {bounds: Measured(bounds, table.main["snapshot-id"], newest_time, snapshots) for bounds in measurable_bounds}
    for measured_bounds in all_measured.values():
        _add_rows(measured_bounds, pipeline)
    return all_measured


def _newest_of(source: TableChanges, pipeline: Pipeline) -> PinnedTable:
    """The newest snapshot of a table in which rows are looked up."""
    main = commits.current(pipeline, source, "in which {} looks rows up")[1]
    return PinnedTable(main["snapshot-id"], metadata.rows(metadata.summary(main)))


def _newest_time(table: Metadata, pipeline: Pipeline) -> int | None:
    try:
        newest_time = metadata.newest_time(table, pipeline.event_time) if pipeline.event_time else None
    except (OSError, ValueError) as error:
        name = pipeline.table.identifier
        raise catalog_failed("table-unreadable", f"the newest time in {name} cannot be read", str(error), "") from None
    return None if newest_time is None else micros(newest_time)


def _add_rows(measured_bounds: Measured, pipeline: Pipeline) -> None:
    """Counts the rows that came since the last batch, while this one is prepared."""
    since = moments.cached_snapshot(measured_bounds, pipeline)
    if since is not None:
        moments.add(measured_bounds, pipeline, lambda: _rows_since(since, measured_bounds, pipeline))


def _rows_since(since: int, measured_bounds: Measured, pipeline: Pipeline) -> RecordBatchReader | None:
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    if table is None:
        return None
    bounds = measured_bounds.bounds
    rows = table.incremental_append_scan(
        from_snapshot_id_exclusive=since, to_snapshot_id_inclusive=measured_bounds.snapshot,
        selected_fields=(*bounds.per, bounds.column, pipeline.event_time or ""),
    )  # fmt: skip
    return rows.to_arrow_batch_reader()


def _only_added(table: Metadata) -> Iterator[int]:
    """The newest snapshots, down to the last one since which rows were only added."""
    for snapshot in table.ancestors():
        yield snapshot["snapshot-id"]
        if metadata.summary(snapshot).get("operation") not in ("append", "replace"):
            return
