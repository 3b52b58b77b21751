"""Rows with the bounds of their groups, measured on the pipeline's own table as it was when the batch began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.core.rows import moments
from framework.core.rows.moments import values
from framework.core.rows.pins import Measured, Pins
from framework.plan import Bounds, Pipeline
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NONE = "CAST(NULL AS struct<low:double,high:double>)"


def with_bounds(rows: DataFrame, bounds: Bounds, pipeline: Pipeline, pins: Pins) -> DataFrame:
    """The rows, each with the bounds of its group."""
    from pyspark.sql import functions

    measured = pins.measured.get(bounds)
    bounds_of_groups = _of_groups(rows.sparkSession, measured, pipeline) if measured else None
    if bounds_of_groups is None:
        return rows.selectExpr("*", f"{_NONE} AS {bounds.name}")
    same = " AND ".join(f"{identifier(name)} <=> _sluice_per{index}" for index, name in enumerate(bounds.per))
    joined = rows.join(functions.broadcast(bounds_of_groups), functions.expr(same or "true"), "left")
    return joined.drop(*(f"_sluice_per{index}" for index in range(len(bounds.per))))


def _of_groups(spark: Any, measured: Measured, pipeline: Pipeline) -> DataFrame | None:
    """The bounds of each group; None before the table has such rows."""
    from pyspark.sql import functions

    bounds = measured.bounds
    if bounds.over is not None and measured.newest_time is None:
        return None
    groups = [f"_sluice_per{index}" for index in range(len(bounds.per))]
    if bounds.deviations is not None and bounds.over is not None:
        return moments.bounds_of(spark, measured, pipeline)
    rows = values(spark.read.option("versionAsOf", measured.snapshot), bounds, pipeline)
    if bounds.over is not None:
        rows = rows.where(f"at >= {moments.window_start(measured)}L")
    else:
        order = ", ".join(
            f"{name} DESC NULLS LAST" for name in ("at", "_kafka_partition", "_kafka_offset") if name in rows.columns
        )
        window = f"PARTITION BY {', '.join(groups)} " if groups else ""
        rows = rows.selectExpr("*", f"row_number() OVER ({window}ORDER BY {order}) AS nth").where(f"nth <= {bounds.rows}")
    if bounds.quantiles is not None:
        low, high = (f"percentile(x, {quantile!r}D)" for quantile in bounds.quantiles)
    else:
        far = f"({float(bounds.deviations or 0)!r}D * stddev_samp(x) + 1e-9D * abs(avg(x)))"
        low, high = f"avg(x) - {far}", f"avg(x) + {far}"
    bounds_sql = f"named_struct('low', {low}, 'high', {high})"
    return rows.groupBy(*groups).agg(functions.expr(f"IF(count(x) >= {bounds.at_least}, {bounds_sql}, NULL) AS {bounds.name}"))
