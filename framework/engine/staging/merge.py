"""A MERGE into an attempt's branch, in a session of its own: what the snapshot says of itself is a setting of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from framework.engine.staging import Target
from framework.engine.staging.ranges import Near
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Rows of the table are looked up in a map of the batch's, where that is small, instead of sorted.
_BY_MAP = {
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
}
# Where the keys are listed, so few rows can be met that they fit anywhere; and no code is compiled anew for other keys.
_LISTED = {
    "spark.sql.optimizer.inSetConversionThreshold": "0",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
}


def inserts(to: Target, unless: str) -> str:
    """The clause by which rows that the table does not have come in."""
    columns = sources(to)
    return f"WHEN NOT MATCHED AND NOT {unless} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"


def sources(to: Target) -> dict[str, str]:
    """SQL of what goes into each column of the table; null where the spec no longer has it."""
    ours = {column.name for column in to.pipeline.table.columns}
    return {identifier(name): f"s.{identifier(name)}" if name in ours else "NULL" for name in to.there}


def merge(to: Target, rows: DataFrame, near: Near, statement: Callable[[str], Iterable[str]]) -> None:
    """`statement` gives the clauses of the rows `s`, which it is told the name of, and of the table `t`."""
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    view = f"sluice_{to.attempt}"
    rows.createOrReplaceTempView(view)
    try:
        own = SparkSession(to.spark.sparkContext, to.spark._jsparkSession.cloneSession())
        about = {f"spark.sql.iceberg.snapshot-property.{key}": value for key, value in to.summary.items()}
        for key, value in {**about, **_BY_MAP, **(_LISTED if near.listed else {})}.items():
            own.conf.set(key, value)
        own.sql("\n".join(statement(view)))
        # The session has a connection of its own to the catalog.
        to.lake.iceberg.spark.Spark3Util.loadIcebergCatalog(own._jsparkSession, to.pipeline.table.catalog.name).close()
    finally:
        with suppress(Py4JError, ConnectionError):  # Spark may be gone, which is told by what failed
            to.spark.catalog.dropTempView(view)
    to.context.at("merged")
