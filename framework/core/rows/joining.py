"""Joins rows with the rows of another table that have the same keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.core.rows.pins import Pins
from framework.plan import IS_CURRENT, Lookup, TableChanges
from framework.sql.quote import identifier, present_or_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BROADCAST_ROWS = 1_000_000  # rows that each task can have in its memory


def taken_column(name: str) -> str:
    """The column of a joined row that holds a column of the other table."""
    return identifier(f"_sluice_taken_{name}")


def current(spark: Any, source: TableChanges, snapshot: int | None) -> DataFrame:
    """The rows of another table in a snapshot, or now; of a history, those that have not ended."""
    reader = spark.read if snapshot is None else spark.read.option("versionAsOf", snapshot)
    rows: DataFrame = reader.table(identifier(source.catalog.name, *source.identifier.split(".")))
    rows = rows.where(IS_CURRENT) if source.versions else rows
    return rows.selectExpr(*present_or_null((*source.columns, *source.kafka), rows.columns))


def joined(rows: DataFrame, join: Lookup, pins: Pins) -> DataFrame:
    """The rows, each with what the other table has: `_sluice_there` is null where it has nothing, and then `_sluice_waits` says whether it
    may still come."""
    from pyspark.sql import functions

    other_rows = current(rows.sparkSession, join.source, pins.snapshot(join.source))
    other_rows = other_rows.selectExpr(
        *(f"{identifier(name)} AS _sluice_on{index}" for index, name in enumerate(join.on)),
        *(f"{identifier(name)} AS {taken_column(name)}" for name in join.take),
        "true AS _sluice_there",
    )
    pinned_table = pins.table(join.source)
    if pinned_table is not None and pinned_table.rows <= _BROADCAST_ROWS:
        other_rows = functions.broadcast(other_rows)
    same = " AND ".join(f"{identifier(name)} = _sluice_on{index}" for index, name in enumerate(join.on))
    waits = "false"
    if join.within is not None and pins.time is not None:
        waits = f"_sluice_there IS NULL AND _kafka_timestamp > timestamp_micros({pins.time - join.within * 1_000_000}L)"
    return rows.join(other_rows, functions.expr(same), "left").selectExpr("*", f"{waits} AS _sluice_waits")
