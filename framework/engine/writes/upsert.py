"""One row per key: a batch is reduced to the newest row of each, which goes into the table if it is newer than what is there.

Guarantee: the same rows come out of the same messages in any order and in any batches, as long as a deleted key is remembered.
Cost: a sort of the batch by its keys; of the table only files are read whose bounds hold a key of the batch. Rows that change are
marked in deletion vectors (position deletes in format 2), and no file is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from framework.engine import rows
from framework.engine.rows import UPSERTED, Changed, Counted, Frame
from framework.engine.spark_errors import named_errors
from framework.engine.writes import Target, deletes, keyed, ranges
from framework.plan.change import stored
from framework.plan.model import Upsert
from framework.plan.reshape import reshaped
from framework.plan.rows import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELETE, _NTH = UPSERTED
_CHANGES = {
    "inserted": "inserted",
    "updated": "matched-updated",
    "deleted": "matched-deleted",
}  # as Iceberg's summaries call them


def stage(to: Target, frame: Frame) -> Counted:
    upsert = to.pipeline.table.upsert
    assert upsert is not None
    newest = keyed.newest(_as_stored(to, frame.good), upsert, _NTH).persist()
    try:
        with named_errors(to.pipeline):
            deleted = newest.selectExpr(f"count_if({_DELETE})").collect()[0][0]  # the pass over the messages
            counted = rows.counted(to.spark, to.pipeline, frame.observed)
            if counted.unknown:
                return counted
            near = ranges.near(to, newest, upsert.keys)
            _merge(to, upsert, deletes.without_late(to, newest, upsert, near), near)
            to.context.at("merged")
            if deleted:
                deletes.stage(to, newest.where(_DELETE), upsert)
        return replace(counted, changed=_changed(to))
    finally:
        newest.unpersist()


def _as_stored(to: Target, good: DataFrame) -> DataFrame:
    """With the types that the table has, which may be wider."""
    there = _there(to)
    made = (
        f"{reshaped(named(column.name), stored(column.type), there[column.name])} AS {named(column.name)}"
        for column in to.pipeline.table.columns
    )
    return good.selectExpr(*made, *UPSERTED)


def _there(to: Target) -> Mapping[str, Any]:
    return {field.name: field.type for field in to.lake.existing(to.table).columns}


def _merge(to: Target, upsert: Upsert, newest: DataFrame, near: str) -> None:
    """In a session of its own: what the snapshot says of itself is a setting of the session."""
    from pyspark.sql import SparkSession

    view = f"sluice_{to.attempt}"
    newest.createOrReplaceTempView(view)
    try:
        own = SparkSession(to.spark.sparkContext, to.spark._jsparkSession.cloneSession())
        for key, value in to.summary.items():
            own.conf.set(f"spark.sql.iceberg.snapshot-property.{key}", value)
        own.sql("\n".join(_statement(to, upsert, view, near)))
    finally:
        to.spark.catalog.dropTempView(view)


def _statement(to: Target, upsert: Upsert, view: str, near: str) -> Iterator[str]:
    ours = {column.name for column in to.pipeline.table.columns}
    columns = {named(name): f"s.{named(name)}" if name in ours else "NULL" for name in _there(to)}
    is_newer = keyed.newer(upsert, "s", "t")
    yield f"MERGE INTO {to.own} t USING {view} s ON {keyed.same(upsert, 's', 't')}{f' AND {near}' if near else ''}"
    if upsert.deletes or upsert.tombstones:
        yield f"WHEN MATCHED AND s.{_DELETE} AND {is_newer} THEN DELETE"
    yield f"WHEN MATCHED AND {is_newer} THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in columns.items())}"
    yield f"WHEN NOT MATCHED AND NOT s.{_DELETE} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"


def _changed(to: Target) -> Changed | None:
    said = to.lake.summary(to.pipeline.table.identifier, to.attempt)
    found = {name: said.get(f"spark.merge-into.num-target-rows-{of}") for name, of in _CHANGES.items()}
    return Changed(**{name: int(number) for name, number in found.items() if number is not None}) if all(found.values()) else None
