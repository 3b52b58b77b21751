"""Means and deviations of groups over a time, which are kept in this process and brought up to date from the rows that came since.

Guarantee: the same as from all rows of the snapshot, but for the last digits. Where rows were changed or deleted since, all are read again.
Cost: the rows of the time once per process, then those of each batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.model import IS_CURRENT, Bounds, Pipeline
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTS = 24  # of the time, which are counted apart
_MOST = 500_000  # counts that are kept


@dataclass(frozen=True)
class _Kept:
    snapshot: int
    counts: (
        Any  # a table of Arrow: by group and part of the time the number of values, their mean and the sum of squares around it
    )


_KEPT: dict[tuple[str, str, Bounds], _Kept] = {}


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
    return rows.where("x IS NOT NULL AND NOT isnan(x)")


def _length(bounds: Bounds) -> int:
    """Of a part of the time, in microseconds."""
    return max(1_000_000, (bounds.over or 0) * 1_000_000 // _PARTS)


def since(bounds: Bounds) -> int:
    """When the time begins, in microseconds: with the part that holds its beginning."""
    assert bounds.newest is not None and bounds.over is not None, "there are rows, and a time"
    return (bounds.newest - bounds.over * 1_000_000) // _length(bounds) * _length(bounds)


def bounds_of(spark: Any, bounds: Bounds, pipeline: Pipeline) -> DataFrame:
    """The bounds of each group, from the counts of now."""
    per = [f"_sluice_per{at}" for at in range(len(bounds.per))]
    over = f"OVER (PARTITION BY {', '.join(per)})" if per else "OVER ()"
    counts = spark.createDataFrame(_counts(spark, bounds, pipeline)).coalesce(1).where(f"part >= {since(bounds)}L")  # in one task
    centred = counts.selectExpr("*", f"sum(n * mean) {over} / sum(n) {over} AS centre")
    grouped = centred.groupBy(*per).agg(
        *_expressions("sum(n) AS n", "max(centre) AS centre", "sum(squares + n * (mean - centre) * (mean - centre)) AS squares")
    )
    # The mean of equal values can differ from them in its last digits.
    far = f"({float(bounds.deviations or 0)!r}D * sqrt(squares / nullif(n - 1, 0)) + 1e-9D * abs(centre))"
    both = f"named_struct('low', centre - {far}, 'high', centre + {far})"
    result: DataFrame = grouped.selectExpr(*per, f"IF(n >= {bounds.at_least}, {both}, NULL) AS {bounds.name}")
    return result


def _counts(spark: Any, bounds: Bounds, pipeline: Pipeline) -> Any:
    """The counts as of the snapshot, which are kept."""
    import pyarrow

    key = (pipeline.table.catalog.name, pipeline.table.identifier, bounds)
    kept = _KEPT.get(key)
    if kept is not None and kept.snapshot == bounds.snapshot:
        return kept.counts
    reader = spark.read
    if kept is not None and kept.snapshot in bounds.since:
        reader = reader.option("start-snapshot-id", kept.snapshot).option("end-snapshot-id", bounds.snapshot)
    else:
        kept, reader = None, reader.option("versionAsOf", bounds.snapshot)
    length = _length(bounds)
    rows = values(reader, bounds, pipeline).where(f"at >= {since(bounds)}L")
    parts = rows.selectExpr("*", f"at - pmod(at, {length}L) AS part")
    per = [f"_sluice_per{at}" for at in range(len(bounds.per))]
    counts = parts.groupBy(*per, "part").agg(*_expressions("count(x) AS n", "avg(x) AS mean", "var_pop(x) * count(x) AS squares"))
    counts = counts.toArrow() if kept is None else pyarrow.concat_tables([kept.counts, counts.toArrow()])
    if len(counts) <= _MOST and bounds.snapshot is not None:
        _KEPT[key] = _Kept(bounds.snapshot, counts)
    else:  # they are read again next time, which makes one count of several
        _KEPT.pop(key, None)
    return counts


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql import functions

    return list(map(functions.expr, texts))
