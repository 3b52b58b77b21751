"""Rows with the bounds of their groups, measured on the pipeline's own table as it was when the batch began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.model import IS_CURRENT, Bounds, Pipeline
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NONE = "CAST(NULL AS struct<low:double,high:double>)"


def with_bounds(rows: DataFrame, bounds: Bounds, pipeline: Pipeline) -> DataFrame:
    """The rows, each with the bounds of its group."""
    from pyspark.sql import functions

    measured = _measured(rows.sparkSession, bounds, pipeline)
    if measured is None:
        return rows.selectExpr("*", f"{_NONE} AS {bounds.name}")
    same = " AND ".join(f"{identifier(name)} <=> _sluice_per{at}" for at, name in enumerate(bounds.per))
    joined = rows.join(functions.broadcast(measured), functions.expr(same or "true"), "left")
    return joined.drop(*(f"_sluice_per{at}" for at in range(len(bounds.per))))


def _measured(spark: Any, bounds: Bounds, pipeline: Pipeline) -> DataFrame | None:
    """The bounds of each group; None before the table has such rows."""
    from pyspark.sql import functions

    table = pipeline.table
    if bounds.snapshot is None:
        return None
    rows = spark.read.option("versionAsOf", bounds.snapshot).table(identifier(table.catalog.name, table.namespace, table.name))
    if table.keyed and table.keyed.versions:
        rows = rows.where(IS_CURRENT)
    value = f"CAST({identifier(bounds.column)} AS DOUBLE)"
    rows = _near(rows.where(f"{value} IS NOT NULL AND NOT isnan({value})"), bounds, pipeline)
    per = [f"_sluice_per{at}" for at in range(len(bounds.per))]
    own = (f"{identifier(name)} AS {each}" for name, each in zip(bounds.per, per, strict=True))
    both = f"named_struct('low', {bounds.low}, 'high', {bounds.high})"
    measured = rows.selectExpr(*own, f"{value} AS x").groupBy(*per)
    return measured.agg(functions.expr(f"IF(count(x) >= {bounds.at_least}, {both}, NULL) AS {bounds.name}"))


def _near(rows: DataFrame, bounds: Bounds, pipeline: Pipeline) -> DataFrame:
    """The rows that count: of the last time, or the last ones of each group."""
    assert pipeline.event_time is not None, "bounds need a time"
    time = identifier(pipeline.event_time)
    if bounds.over is not None:
        since = "NULL" if bounds.newest is None else f"{bounds.newest - bounds.over * 1_000_000}L"
        return rows.where(f"{time} > timestamp_micros({since})")
    order = [pipeline.event_time, *(name for name in ("_kafka_partition", "_kafka_offset") if name in rows.columns)]
    window = f"PARTITION BY {', '.join(map(identifier, bounds.per))} " if bounds.per else ""
    newest_first = ", ".join(f"{identifier(name)} DESC NULLS LAST" for name in order)
    return rows.selectExpr("*", f"row_number() OVER ({window}ORDER BY {newest_first}) AS _sluice_nth").where(
        f"_sluice_nth <= {bounds.rows}"
    )
