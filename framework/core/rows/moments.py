"""Means and deviations of groups over a time, which are kept in this process and brought up to date from the rows that came since.

Guarantee: the same as from all rows of the snapshot, but for the last digits. Where rows were changed or deleted since, all are read again.
Cost: the rows of the time once per process by Spark, then those of each batch by PyIceberg and DuckDB, which are done before a job of
Spark has started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.plan import IS_CURRENT, Bounds, Pipeline
from framework.sql import standard
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyarrow import RecordBatchReader
    from pyspark.sql import DataFrame

_PARTS = 24  # of the time, which are counted apart
_MOST = 500_000  # counts that are kept


@dataclass(frozen=True)
class _Kept:
    snapshot: int
    counts: Any  # a table of Arrow: by group and part of the time the number of values, their mean, the sum of squares around it


_KEPT: dict[tuple[str, str, Bounds], _Kept] = {}
_ADDING: dict[tuple[str, str, Bounds], Future[None]] = {}
_WORKER = ThreadPoolExecutor(1, "moments")


def values(reader: Any, bounds: Bounds, pipeline: Pipeline) -> DataFrame:
    """The values `x` of the table, with their groups and their times `at` in microseconds."""
    assert pipeline.event_time is not None, "bounds need a time"
    table = pipeline.table
    rows: DataFrame = reader.table(identifier(table.catalog.name, table.namespace, table.name))
    if table.keyed and table.keyed.versions:
        rows = rows.where(IS_CURRENT)
    x = f"CAST({identifier(bounds.column)} AS DOUBLE)"
    per = (f"{identifier(name)} AS _sluice_per{at}" for at, name in enumerate(bounds.per))
    places = (name for name in ("_kafka_partition", "_kafka_offset") if name in rows.columns)
    rows = rows.selectExpr(*per, f"{x} AS x", f"unix_micros({identifier(pipeline.event_time)}) AS at", *places)
    return rows.where("abs(x) < CAST('Infinity' AS DOUBLE)")  # with those that are no number, and those without a value


def _length(bounds: Bounds) -> int:
    """Of a part of the time, in microseconds."""
    return max(1_000_000, (bounds.over or 0) * 1_000_000 // _PARTS)


def since(bounds: Bounds) -> int:
    """When the time begins, in microseconds: with the part that holds its beginning."""
    assert bounds.newest_time is not None and bounds.over is not None, "there are rows, and a time"
    return (bounds.newest_time - bounds.over * 1_000_000) // _length(bounds) * _length(bounds)


def bounds_of(spark: Any, bounds: Bounds, pipeline: Pipeline) -> DataFrame | None:
    """The bounds of each group, from the counts of now; None where there is none."""
    # The mean of equal values can differ from them in its last digits.
    far = f"({float(bounds.deviations or 0)!r} * sqrt(squares / nullif(n - 1, 0)) + 1e-9 * abs(mean))"
    both = f"{{'low': mean - {far}, 'high': mean + {far}}}"
    groups = _together({"counts": _counts(spark, bounds, pipeline)}, "SELECT * FROM counts", _per(bounds), bounds)
    if not len(groups):
        return None
    is_enough = f"n >= {bounds.at_least} AND isfinite(mean) AND isfinite(squares)"
    chosen = ", ".join((*_per(bounds), f"CASE WHEN {is_enough} THEN {both} END AS {bounds.name}"))
    result: DataFrame = spark.createDataFrame(_queried({"groups": groups}, f"SELECT {chosen} FROM groups"))
    return result


def _counts(spark: Any, bounds: Bounds, pipeline: Pipeline) -> Any:
    """The counts as of the snapshot, which are kept."""
    kept = _kept(bounds, pipeline)
    if kept is not None and kept.snapshot == bounds.snapshot:
        return kept.counts
    length = _length(bounds)
    rows = values(spark.read.option("versionAsOf", bounds.snapshot), bounds, pipeline).where(f"at >= {since(bounds)}L")
    parts = rows.selectExpr("*", f"at - pmod(at, {length}L) AS part")
    counts = parts.groupBy(*_per(bounds), "part").agg(
        *_expressions("count(x) AS n", "avg(x) AS mean", "var_pop(x) * count(x) AS squares")
    )
    return _keep(counts.toArrow(), bounds, pipeline)


def behind(bounds: Bounds, pipeline: Pipeline) -> int | None:
    """The snapshot of the counts that are kept, where rows were only added since; None if all rows have to be read."""
    kept = _kept(bounds, pipeline)
    versions = pipeline.table.keyed and pipeline.table.keyed.versions
    if kept is None or versions or kept.snapshot == bounds.snapshot or kept.snapshot not in bounds.since:
        return None
    return kept.snapshot


def add(bounds: Bounds, pipeline: Pipeline, read: Callable[[], RecordBatchReader | None]) -> None:
    """Counts the rows that were added since, with the table's columns, while other work goes on. Where they cannot be read here, Spark
    reads all rows."""

    def added() -> None:
        import duckdb

        with suppress(OSError, duckdb.Error):  # the second where the store ends in the middle of a file, or a sum is too large
            if (rows := read()) is not None:
                _add(rows, bounds, pipeline)

    _ADDING[_key(bounds, pipeline)] = _WORKER.submit(added)


def _kept(bounds: Bounds, pipeline: Pipeline) -> _Kept | None:
    """The sums that are kept, once all is added."""
    if (adding := _ADDING.pop(_key(bounds, pipeline), None)) is not None:
        adding.result()
    return _KEPT.get(_key(bounds, pipeline))


def _add(rows: RecordBatchReader, bounds: Bounds, pipeline: Pipeline) -> None:
    assert pipeline.event_time is not None, "bounds need a time"
    per = "".join(f"{standard.identifier(name)} AS _sluice_per{at}, " for at, name in enumerate(bounds.per))
    column, time = standard.identifier(bounds.column), standard.identifier(pipeline.event_time)
    values_ = f"SELECT {per}CAST({column} AS DOUBLE) AS x, epoch_us({time}) AS micros FROM added"
    length = _length(bounds)
    parts = f"SELECT *, micros - (micros % {length} + {length}) % {length} AS part FROM ({values_}) WHERE isfinite(x)"
    by = ", ".join((*_per(bounds), "part"))
    counts = f"SELECT {by}, count(x) AS n, avg(x) AS mean, var_pop(x) * count(x) AS squares FROM ({parts}) GROUP BY {by}"
    kept = _KEPT[_key(bounds, pipeline)]
    both = f"SELECT * FROM kept UNION ALL BY NAME SELECT * FROM ({counts})"
    together = _together({"kept": kept.counts, "added": rows}, both, [*_per(bounds), "part"], bounds)
    _keep(together, bounds, pipeline)


def _keep(counts: Any, bounds: Bounds, pipeline: Pipeline) -> Any:
    if len(counts) <= _MOST and bounds.snapshot is not None:
        _KEPT[_key(bounds, pipeline)] = _Kept(bounds.snapshot, counts)
    else:
        _KEPT.pop(_key(bounds, pipeline), None)
    return counts


def _together(tables: Mapping[str, Any], counts: str, by: list[str], bounds: Bounds) -> Any:
    """One count of those of the time that have the same columns `by`."""
    window = f"PARTITION BY {', '.join(by)}" if by else ""
    of_time = f"SELECT * FROM ({counts}) WHERE part >= {since(bounds)}"
    centred = f"SELECT *, sum(n * mean) OVER each / sum(n) OVER each AS centre FROM ({of_time}) WINDOW each AS ({window})"
    sums = (
        "CAST(sum(n) AS BIGINT) AS n", "any_value(centre) AS mean", "sum(squares + n * (mean - centre) * (mean - centre)) AS squares",
    )  # fmt: skip
    return _queried(tables, f"SELECT {', '.join((*by, *sums))} FROM ({centred}) GROUP BY {', '.join(by) or '()'}")


def _queried(tables: Mapping[str, Any], sql: str) -> Any:
    import duckdb

    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(sql).to_arrow_table()


def _key(bounds: Bounds, pipeline: Pipeline) -> tuple[str, str, Bounds]:
    return pipeline.table.catalog.name, pipeline.table.identifier, bounds


def _per(bounds: Bounds) -> list[str]:
    return [f"_sluice_per{at}" for at in range(len(bounds.per))]


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql import functions

    return list(map(functions.expr, texts))
