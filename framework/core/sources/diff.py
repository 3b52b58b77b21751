"""The differences of two snapshots of a table, counted and with the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from framework.base import iso_times
from framework.base.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Array, Map, Struct
from framework.core.iceberg import metadata
from framework.core.iceberg.at import Moment, snapshot_at
from framework.core.rules import refusals
from framework.core.sources import changes
from framework.core.sources.changes import ADDED, AFTER, BEFORE, CHANGE, COMMIT, DELETED, ROW
from framework.plan import Column, Pipeline
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from framework.core.iceberg.lake import TableStore

_CHANGE_COLUMN = "what"
_AS_IT_IS = (BIGINT, INT, DOUBLE, FLOAT, BOOLEAN, STRING)
_FOLLOWS = (DELETED, BEFORE, AFTER, ADDED)


@dataclass(frozen=True)
class Diff:
    """Two snapshots, and the rows that differ. A changed row comes twice, as `before` and `after`."""

    since: int
    until: int
    _: KW_ONLY
    counts: Mapping[str, int]  # added, changed, deleted
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]  # what happened, then the columns


def snapshots(pipeline: Pipeline, since: Moment, until: Moment | None) -> tuple[int, int]:
    """The ids of the snapshots at two moments; the later one is by default the current snapshot."""
    identifier_ = pipeline.table.identifier
    table = metadata.read(pipeline.table.catalog, identifier_)
    if table is None or table.main is None:
        raise refusals.no_table(pipeline)
    main = int(table.main["snapshot-id"])
    return snapshot_at(table, identifier_, since), main if until is None else snapshot_at(table, identifier_, until)


def diff(lake: TableStore, pipeline: Pipeline, since: int, until: int, limit: int) -> Diff:
    """Counts the rows that differ, and reads the first `limit` of them."""
    columns = pipeline.table.columns
    rows = changes.between(lake, lake.load(pipeline.table.identifier), columns, since, until).rows().cache()
    try:
        counts = {row[CHANGE]: row["count"] for row in rows.groupBy(CHANGE).count().collect()}
        cases = " ".join(f"WHEN '{change}' THEN {index}" for index, change in enumerate(_FOLLOWS))
        first_rows = (
            rows.selectExpr("*", f"CASE {CHANGE} {cases} END AS _sluice_nth").orderBy(ROW, COMMIT, "_sluice_nth").limit(limit)
        )
        printable = first_rows.selectExpr(CHANGE, *(f"{_plain(column)} AS {identifier(column.name)}" for column in columns))
        differing = tuple(_printed(columns, row) for row in printable.collect())
    finally:
        rows.unpersist()
    totals = {"added": counts.get(ADDED, 0), "changed": counts.get(AFTER, 0), "deleted": counts.get(DELETED, 0)}
    return Diff(since, until, counts=totals, columns=(Column(_CHANGE_COLUMN, STRING), *columns), rows=differing)


def _printed(columns: Sequence[Column], row: Sequence[Any]) -> tuple[Any, ...]:
    """A row whose times are in the one format of times; the session's zone is UTC."""
    zones = {TIMESTAMP: "+00", TIMESTAMP_NTZ: ""}
    change, *values = row
    texts = (
        iso_times.of_sql(f"{value}{zones[column.type]}") if column.type in zones and value is not None else value
        for column, value in zip(columns, values, strict=True)
    )
    return (change, *texts)


def _plain(column: Column) -> str:
    """SQL of a column's value for JSON: types that JSON does not have become text."""
    name = identifier(column.name)
    if isinstance(column.type, (Array, Map, Struct)):
        return f"to_json({name})"
    return name if column.type in _AS_IT_IS else f"CAST({name} AS STRING)"
