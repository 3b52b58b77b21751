"""A MERGE into an attempt's branch, with settings of its own (`Statement.java`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from framework.core.staging import StagingTarget
from framework.core.staging.ranges import KeyRange
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Rows of the table are looked up in a map of the batch's, where that is small, instead of sorted.
_BY_MAP = {"spark.sql.join.preferSortMergeJoin": "false", "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m"}
# Where the keys are listed, the matching rows are few and fit anywhere; and other keys need no new code.
_LISTED = {
    "spark.sql.optimizer.inSetConversionThreshold": "0",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
}


def inserts(target: StagingTarget, unless: str) -> str:
    """The clause that inserts rows that the table does not have."""
    columns = sources(target)
    return f"WHEN NOT MATCHED AND NOT {unless} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"


def sources(target: StagingTarget) -> dict[str, str]:
    """SQL of the value for each column of the table; null where the spec no longer has the column."""
    ours = {column.name for column in target.pipeline.table.columns}
    return {identifier(name): f"s.{identifier(name)}" if name in ours else "NULL" for name in target.column_types}


def merge(target: StagingTarget, rows: DataFrame, near: KeyRange, statement: Callable[[str], Iterable[str]]) -> None:
    """Merges rows. `statement` gives the lines of the MERGE for the name of the rows' view; in them the view is `s`, and the table `t`."""
    from py4j.protocol import Py4JError

    view = f"sluice_{target.attempt}"
    rows.createOrReplaceTempView(view)
    try:
        settings = {**_BY_MAP, **(_LISTED if near.listed else {})}
        target.spark._jvm.sluice.Statement.run(
            target.spark._jsparkSession, "\n".join(statement(view)), settings, dict(target.summary)
        )
    finally:
        with suppress(Py4JError, ConnectionError):  # if Spark has ended, the original error is raised
            target.spark.catalog.dropTempView(view)
    target.context.reached("merged")
