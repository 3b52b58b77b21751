"""Expectations of many rows, checked on the table as a staged batch would leave it.

Cost: reads the checked columns of the batch; for `unique` also those of the table, for `references` the column of the other table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framework.core.iceberg import metadata
from framework.core.rows import joining
from framework.core.rows.counts import UnmetExpectation, place
from framework.core.sources import changes
from framework.core.staging import StagingTarget
from framework.plan import IS_CURRENT, Column, SetExpectation
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("_kafka_partition", "_kafka_offset")


def unmet(target: StagingTarget, since: int, tip: int) -> Iterator[UnmetExpectation]:
    """The expectations that do not hold in the staged snapshot `tip`, which adds the batch to the snapshot `since`."""
    for expected in target.pipeline.sets:
        if expected.kind == "rows":
            rows = metadata.rows(dict(target.table.snapshot(tip).summary()))
            if not expected.least <= rows <= expected.most:
                yield UnmetExpectation(
                    name=expected.name, rows=0, says=f"{rows:,} rows in the table, not as `{expected.name}` expects"
                )
            continue
        failing = _doubled(target, expected, since, tip) if expected.kind == "unique" else _without(target, expected, since, tip)
        count, first_place, last_place = _counted(target, failing)
        if count:
            yield UnmetExpectation(name=expected.name, rows=count, first_place=first_place, last_place=last_place)


def _columns(target: StagingTarget, expected: SetExpectation) -> list[Column]:
    names = [*expected.columns, *(name for name in _PLACE if name not in expected.columns)]
    return [column for name in names for column in target.pipeline.table.columns if column.name == name]


def _new(target: StagingTarget, expected: SetExpectation, since: int, tip: int) -> DataFrame:
    """The rows that the batch added or changed."""
    table = target.pipeline.table
    if table.write.whole:
        return _all(target, expected)
    columns = tuple(_columns(target, expected))
    return changes.between(target.lake, target.table, columns, since, tip, keeps_others=True).now()


def _all(target: StagingTarget, expected: SetExpectation) -> DataFrame:
    rows: DataFrame = target.spark.table(target.attempt_branch)
    rows = rows.where(IS_CURRENT) if target.pipeline.table.rule.versions else rows
    return rows.select(*(identifier(column.name) for column in _columns(target, expected)))


def _doubled(target: StagingTarget, expected: SetExpectation, since: int, tip: int) -> DataFrame:
    """The rows with the same values as another row; nulls are no values."""
    from pyspark.sql import functions

    names = list(map(identifier, expected.columns))
    table_rows = _all(target, expected).where(" AND ".join(f"{name} IS NOT NULL" for name in names))
    keys = _new(target, expected, since, tip).select(*names).distinct()
    doubtful = table_rows.join(keys, list(expected.columns), "left_semi")
    counts = doubtful.groupBy(*names).agg(functions.count("*").alias("_sluice_count")).where("_sluice_count > 1")
    return doubtful.join(counts, list(expected.columns), "left_semi")


def _without(target: StagingTarget, expected: SetExpectation, since: int, tip: int) -> DataFrame:
    """The rows of the batch whose value the other table does not have."""
    assert expected.of is not None
    (column,), (other_column,) = expected.columns, expected.of_columns
    rows = _new(target, expected, since, tip).where(f"{identifier(column)} IS NOT NULL")
    if target.pins.table(expected.of) is None:  # the other table is not there yet
        return rows
    other_rows = joining.current(target.spark, expected.of, target.pins.snapshot(expected.of))
    values = other_rows.selectExpr(f"{identifier(other_column)} AS _sluice_value").distinct()
    return rows.join(values, rows[column] == values["_sluice_value"], "left_anti")


def _counted(target: StagingTarget, rows: DataFrame) -> tuple[int, str | None, str | None]:
    """The number of rows, and the places of the first and the last."""
    has_place = set(_PLACE) <= set(rows.columns)
    places = (f"{function}(struct({', '.join(_PLACE)}))" if has_place else "NULL" for function in ("min", "max"))
    row: Any = rows.selectExpr("count(1) AS count", *(f"{sql} AS place{index}" for index, sql in enumerate(places))).head()
    return row[0], place(row[1]), place(row[2])
