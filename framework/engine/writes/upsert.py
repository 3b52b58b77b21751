"""One row per key: a batch is reduced to the newest row of each, which goes into the table if it is newer than what is there.

Guarantee: the same rows come out of the same messages in any order and in any batches, as long as a deleted key is remembered.
Cost: a sort of the batch by its keys; of the table only files are read whose bounds hold a key of the batch. Rows that change are
marked in deletion vectors (position deletes in format 2), and no file is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from framework.engine import rows
from framework.engine.rows import DELETE, NTH, Counted, Frame
from framework.engine.spark_errors import named_errors
from framework.engine.writes import Target, deletes, keyed, ranges
from framework.engine.writes.ranges import Near
from framework.plan.change import stored
from framework.plan.model import Table, Upsert
from framework.plan.reshape import reshaped
from framework.plan.rows import named
from framework.types import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW = 20_000  # messages whose rows are sorted by one task, which shuffles none
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


def stage(to: Target, frame: Frame) -> Counted:
    upsert = to.pipeline.table.upsert
    assert upsert is not None
    good = frame.good.coalesce(1) if to.size <= _FEW else frame.good
    there = {field.name: field.type for field in to.lake.existing(to.table).columns}
    newest = keyed.newest(_as_stored(to.pipeline.table, there, good), upsert, NTH).persist()
    try:
        with named_errors(to.pipeline):
            deleted, near = ranges.look(to, newest, upsert.keys)
            counted = rows.counted(to.spark, to.pipeline, frame.observed)
            if counted.unknown:
                return counted
            _merge(to, upsert, there, deletes.without_late(to, newest, upsert, near.sql), near)
            to.context.at("merged")
            if deleted:
                deletes.stage(to, newest.where(DELETE), upsert)
        return counted
    finally:
        newest.unpersist()


def _as_stored(table: Table, there: Mapping[str, Type], good: DataFrame) -> DataFrame:
    """With the types that the table has, which may be wider."""
    made = (
        f"{reshaped(named(column.name), stored(column.type), there[column.name])} AS {named(column.name)}"
        for column in table.columns
    )
    return good.selectExpr(*made, DELETE, NTH)


def _merge(to: Target, upsert: Upsert, there: Iterable[str], newest: DataFrame, near: Near) -> None:
    """In a session of its own: what the snapshot says of itself is a setting of the session."""
    from pyspark.sql import SparkSession

    view = f"sluice_{to.attempt}"
    newest.createOrReplaceTempView(view)
    try:
        own = SparkSession(to.spark.sparkContext, to.spark._jsparkSession.cloneSession())
        about = {f"spark.sql.iceberg.snapshot-property.{key}": value for key, value in to.summary.items()}
        for key, value in {**about, **_BY_MAP, **(_LISTED if near.listed else {})}.items():
            own.conf.set(key, value)
        own.sql("\n".join(_statement(to, upsert, there, view, near.sql)))
        jvm: Any = to.spark._jvm  # the session has a connection of its own to the catalog
        jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(own._jsparkSession, to.pipeline.table.catalog.name).close()
    finally:
        to.spark.catalog.dropTempView(view)


def _statement(to: Target, upsert: Upsert, there: Iterable[str], view: str, near: str) -> Iterator[str]:
    ours = {column.name for column in to.pipeline.table.columns}
    columns = {named(name): f"s.{named(name)}" if name in ours else "NULL" for name in there}
    is_newer = keyed.newer(upsert, "s", "t")
    yield f"MERGE INTO {to.own} t USING {view} s ON {keyed.same(upsert, 's', 't')}{f' AND {near}' if near else ''}"
    if upsert.deletes or upsert.tombstones:
        yield f"WHEN MATCHED AND s.{DELETE} AND {is_newer} THEN DELETE"
    yield f"WHEN MATCHED AND {is_newer} THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in columns.items())}"
    yield f"WHEN NOT MATCHED AND NOT s.{DELETE} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"
