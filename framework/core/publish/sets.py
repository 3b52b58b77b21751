"""Expectations of many rows, checked on the table as a staged batch would leave it.

Cost: of the batch the columns that are asked for; for `unique` also those of the table, for `references` those of the other table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framework.core.iceberg import metadata
from framework.core.rows import joining
from framework.core.rows.counts import Unmet, place
from framework.core.sources import changes
from framework.core.staging import Target
from framework.plan import IS_CURRENT, Column, SetExpectation
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("_kafka_partition", "_kafka_offset")


def unmet(to: Target, since: int, tip: int) -> Iterator[Unmet]:
    """The expectations that do not hold in the staged snapshot `tip`, which adds to the one before the batch."""
    for expected in to.pipeline.sets:
        if expected.kind == "rows":
            table: Any = to.lake.load(to.pipeline.table.identifier)
            rows = metadata.rows(dict(table.snapshot(tip).summary()))
            if not expected.least <= rows <= expected.most:
                yield Unmet(name=expected.name, rows=0, says=f"{rows:,} rows in the table, not as `{expected.name}` expects")
            continue
        failing = _doubled(to, expected, since, tip) if expected.kind == "unique" else _without(to, expected, since, tip)
        count, first, last = _counted(to, failing)
        if count:
            yield Unmet(name=expected.name, rows=count, first=first, last=last)


def _columns(to: Target, expected: SetExpectation) -> list[Column]:
    wanted = [*expected.columns, *(name for name in _PLACE if name not in expected.columns)]
    return [column for name in wanted for column in to.pipeline.table.columns if column.name == name]


def _new(to: Target, expected: SetExpectation, since: int, tip: int) -> DataFrame:
    """The rows that the batch added or changed."""
    table = to.pipeline.table
    if table.write.whole:
        return _all(to, expected, tip)
    return changes.between(to.lake, table.identifier, tuple(_columns(to, expected)), since, tip, keeps_others=True).now()


def _all(to: Target, expected: SetExpectation, tip: int) -> DataFrame:
    rows: DataFrame = to.spark.read.option("versionAsOf", tip).table(to.name)
    rows = rows.where(IS_CURRENT) if to.pipeline.table.keyed and to.pipeline.table.keyed.versions else rows
    return rows.select(*(identifier(column.name) for column in _columns(to, expected)))


def _doubled(to: Target, expected: SetExpectation, since: int, tip: int) -> DataFrame:
    """Rows with the values of another row; nulls are no values."""
    from pyspark.sql import functions

    names = list(map(identifier, expected.columns))
    there = _all(to, expected, tip).where(" AND ".join(f"{name} IS NOT NULL" for name in names))
    keys = _new(to, expected, since, tip).select(*names).distinct()
    doubtful = there.join(keys, list(expected.columns), "left_semi")
    counts = doubtful.groupBy(*names).agg(functions.count("*").alias("_sluice_count")).where("_sluice_count > 1")
    return doubtful.join(counts, list(expected.columns), "left_semi")


def _without(to: Target, expected: SetExpectation, since: int, tip: int) -> DataFrame:
    """Rows of the batch whose value the other table does not have."""
    assert expected.of is not None
    (own,), (other,) = expected.columns, expected.of_columns
    rows = _new(to, expected, since, tip).where(f"{identifier(own)} IS NOT NULL")
    if expected.snapshot is None:  # the other table is not there yet
        return rows
    there = joining.current(to.spark, expected.of, expected.snapshot)
    values = there.selectExpr(f"{identifier(other)} AS _sluice_value").distinct()
    return rows.join(values, rows[own] == values["_sluice_value"], "left_anti")


def _counted(to: Target, rows: DataFrame) -> tuple[int, str | None, str | None]:
    """The number of rows, and the places of the first and the last."""
    has_place = set(_PLACE) <= set(rows.columns)
    places = (f"{each}(struct({', '.join(_PLACE)}))" if has_place else "NULL" for each in ("min", "max"))
    row: Any = rows.selectExpr("count(1) AS count", *(f"{sql} AS place{at}" for at, sql in enumerate(places))).head()
    return row[0], place(row[1]), place(row[2])
