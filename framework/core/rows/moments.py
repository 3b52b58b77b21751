"""Means and deviations of groups over a time, which are kept in this process and brought up to date from the rows that came since.

Guarantee: they equal those of all rows of the snapshot, but for the last digits. Where rows were changed or deleted since, all are read
again.
Cost: the rows of the time once per process by Spark, then those of each batch by PyIceberg and DuckDB, which are done before a job of
Spark has started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.core.rows.pins import Measured
from framework.plan import IS_CURRENT, Bounds, Pipeline
from framework.sql import standard
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyarrow import RecordBatchReader
    from pyspark.sql import DataFrame

_PARTS = 24  # parts of the time, each of which has its own counts
_MAX_COUNTS = 500_000  # counts that are kept


@dataclass(frozen=True)
class _CachedCounts:
    snapshot: int
    counts: Any  # a table of Arrow: by group and part of the time the number of values, their mean, the sum of squares around it


_CACHE: dict[tuple[str, str, Bounds], _CachedCounts] = {}
_ADDING: dict[tuple[str, str, Bounds], Future[None]] = {}
_WORKER = ThreadPoolExecutor(1, "moments")


def values(reader: Any, bounds: Bounds, pipeline: Pipeline) -> DataFrame:
    """The values `x` of the table, with their groups and their times `at` in microseconds."""
    assert pipeline.event_time is not None, "bounds need a time"
    table = pipeline.table
    rows: DataFrame = reader.table(identifier(table.catalog.name, table.namespace, table.name))
    if table.rule.versions:
        rows = rows.where(IS_CURRENT)
    x = f"CAST({identifier(bounds.column)} AS DOUBLE)"
    groups = (f"{identifier(name)} AS _sluice_per{index}" for index, name in enumerate(bounds.per))
    places = (name for name in ("_kafka_partition", "_kafka_offset") if name in rows.columns)
    rows = rows.selectExpr(*groups, f"{x} AS x", f"unix_micros({identifier(pipeline.event_time)}) AS at", *places)
    return rows.where("abs(x) < CAST('Infinity' AS DOUBLE)")  # also drops values that are no number, and nulls


def _length(bounds: Bounds) -> int:
    """The length of a part of the time, in microseconds."""
    return max(1_000_000, (bounds.over or 0) * 1_000_000 // _PARTS)


def window_start(measured: Measured) -> int:
    """The beginning of the time, in microseconds, rounded down to that of a part."""
    assert measured.newest_time is not None and measured.bounds.over is not None, "there are rows, and a time"
    return (measured.newest_time - measured.bounds.over * 1_000_000) // _length(measured.bounds) * _length(measured.bounds)


def bounds_of(spark: Any, measured: Measured, pipeline: Pipeline) -> DataFrame | None:
    """The bounds of each group, from the current counts; None where there is no group."""
    # The mean of equal values can differ from them in its last digits.
    far = f"({float(measured.bounds.deviations or 0)!r} * sqrt(squares / nullif(n - 1, 0)) + 1e-9 * abs(mean))"
    bounds_sql = f"{{'low': mean - {far}, 'high': mean + {far}}}"
    groups = _together({"counts": _counts(spark, measured, pipeline)}, "SELECT * FROM counts", _per(measured.bounds), measured)
    if not len(groups):
        return None
    is_enough = f"n >= {measured.bounds.at_least} AND isfinite(mean) AND isfinite(squares)"
    columns = ", ".join((*_per(measured.bounds), f"CASE WHEN {is_enough} THEN {bounds_sql} END AS {measured.bounds.name}"))
    result: DataFrame = spark.createDataFrame(_queried({"groups": groups}, f"SELECT {columns} FROM groups"))
    return result


def _counts(spark: Any, measured: Measured, pipeline: Pipeline) -> Any:
    """The counts as of the snapshot, which are then kept."""
    cached_counts = _cached_counts(measured, pipeline)
    if cached_counts is not None and cached_counts.snapshot == measured.snapshot:
        return cached_counts.counts
    length = _length(measured.bounds)
    rows = values(spark.read.option("versionAsOf", measured.snapshot), measured.bounds, pipeline).where(
        f"at >= {window_start(measured)}L"
    )
    parts = rows.selectExpr("*", f"at - pmod(at, {length}L) AS part")
    counts = parts.groupBy(*_per(measured.bounds), "part").agg(
        *_expressions("count(x) AS n", "avg(x) AS mean", "var_pop(x) * count(x) AS squares")
    )
    return _keep(counts.toArrow(), measured, pipeline)


def cached_snapshot(measured: Measured, pipeline: Pipeline) -> int | None:
    """The snapshot of the counts that are kept, where rows were only added since; None if all rows have to be read."""
    cached_counts = _cached_counts(measured, pipeline)
    if (
        cached_counts is None
        or pipeline.table.rule.versions
        or cached_counts.snapshot == measured.snapshot
        or cached_counts.snapshot not in measured.since
    ):
        return None
    return cached_counts.snapshot


def add(measured: Measured, pipeline: Pipeline, read: Callable[[], RecordBatchReader | None]) -> None:
    """Counts the rows that were added since the kept counts, with the table's columns, while other work goes on. Where they cannot be
    read here, Spark reads all rows."""

    def added() -> None:
        import duckdb

        with suppress(OSError, duckdb.Error):  # DuckDB's where the store ends in the middle of a file, or a sum is too large
            if (rows := read()) is not None:
                _add(rows, measured, pipeline)

    _ADDING[_key(measured.bounds, pipeline)] = _WORKER.submit(added)


def _cached_counts(measured: Measured, pipeline: Pipeline) -> _CachedCounts | None:
    """The counts that are kept, once all rows are added."""
    if (future := _ADDING.pop(_key(measured.bounds, pipeline), None)) is not None:
        future.result()
    return _CACHE.get(_key(measured.bounds, pipeline))


def _add(rows: RecordBatchReader, measured: Measured, pipeline: Pipeline) -> None:
    assert pipeline.event_time is not None, "bounds need a time"
    groups = "".join(f"{standard.identifier(name)} AS _sluice_per{index}, " for index, name in enumerate(measured.bounds.per))
    column, time = standard.identifier(measured.bounds.column), standard.identifier(pipeline.event_time)
    values_sql = f"SELECT {groups}CAST({column} AS DOUBLE) AS x, epoch_us({time}) AS micros FROM added"
    length = _length(measured.bounds)
    parts_sql = f"SELECT *, micros - (micros % {length} + {length}) % {length} AS part FROM ({values_sql}) WHERE isfinite(x)"
    columns = ", ".join((*_per(measured.bounds), "part"))
    counts_sql = (
        f"SELECT {columns}, count(x) AS n, avg(x) AS mean, var_pop(x) * count(x) AS squares FROM ({parts_sql}) GROUP BY {columns}"
    )
    cached_counts = _CACHE[_key(measured.bounds, pipeline)]
    all_counts_sql = f"SELECT * FROM kept UNION ALL BY NAME SELECT * FROM ({counts_sql})"
    merged_counts = _together(
        {"kept": cached_counts.counts, "added": rows}, all_counts_sql, [*_per(measured.bounds), "part"], measured
    )
    _keep(merged_counts, measured, pipeline)


def _keep(counts: Any, measured: Measured, pipeline: Pipeline) -> Any:
    if len(counts) <= _MAX_COUNTS:
        _CACHE[_key(measured.bounds, pipeline)] = _CachedCounts(measured.snapshot, counts)
    else:
        _CACHE.pop(_key(measured.bounds, pipeline), None)
    return counts


def _together(tables: Mapping[str, Any], counts_sql: str, group_columns: list[str], measured: Measured) -> Any:
    """Adds up the counts of the time that have the same `group_columns`."""
    window = f"PARTITION BY {', '.join(group_columns)}" if group_columns else ""
    of_time = f"SELECT * FROM ({counts_sql}) WHERE part >= {window_start(measured)}"
    centred = f"SELECT *, sum(n * mean) OVER each / sum(n) OVER each AS centre FROM ({of_time}) WINDOW each AS ({window})"
    sums = (
        "CAST(sum(n) AS BIGINT) AS n", "any_value(centre) AS mean", "sum(squares + n * (mean - centre) * (mean - centre)) AS squares",
    )  # fmt: skip
    return _queried(
        tables, f"SELECT {', '.join((*group_columns, *sums))} FROM ({centred}) GROUP BY {', '.join(group_columns) or '()'}"
    )


def _queried(tables: Mapping[str, Any], sql: str) -> Any:
    import duckdb

    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(sql).to_arrow_table()


def _key(bounds: Bounds, pipeline: Pipeline) -> tuple[str, str, Bounds]:
    return pipeline.table.catalog.name, pipeline.table.identifier, bounds


def _per(bounds: Bounds) -> list[str]:
    return [f"_sluice_per{index}" for index in range(len(bounds.per))]


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql import functions

    return list(map(functions.expr, texts))
