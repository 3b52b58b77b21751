"""Kafka's times of a key's messages, made to rise in each partition: the clock of a producer or broker may step back.

A row's time becomes the greatest of the messages of its key in its partition up to its own, so that rows in order of (time, partition,
offset) are in order of their offsets in each partition, and by Kafka's time between partitions. If rows have an event time, this holds
among the rows with the same one.
Guarantee: the same row of a key is the newest in any batches, since it carries the time that later messages need.
Cost: a pass over the sorted rows of a batch. Before the MERGE, a search for rows of a partition that are later than the batch's first
one there: among the remembered deletes, and in the table if the batch deletes. While no clock steps back there are none. If a key came in
several partitions, both are read for all keys of the batch.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from framework.core.rows.own_columns import SEVERAL
from framework.core.staging import StagingTarget, by_key, deletes, ranges
from framework.core.staging.ranges import Scan
from framework.plan import KAFKA_COLUMNS, Keyed
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_, _OFFSET, TIME = (column.name for column in KAFKA_COLUMNS)
STORED = "_sluice_stored"  # whether a row is an earlier batch's, which keeps its time


def risen(rows: DataFrame, keyed: Keyed) -> DataFrame:
    """Returns the rows of a batch with times that rise."""
    from pyspark.sql import functions

    return rows.withColumn(TIME, functions.expr(_risen_time(keyed))) if keyed.partition else rows


def risen_beside(target: StagingTarget, rows: DataFrame) -> DataFrame:
    """Returns the rows, of which some are `STORED`, with times that rise after the stored ones. Replayed messages were late:
    in their partition they stay before the messages that were stored meanwhile."""
    from pyspark.sql import functions

    keyed = target.keyed
    if not keyed.partition:
        return rows
    time = _risen_time(keyed)
    if target.replays:
        later = f"min(struct({_fields(keyed)}, NOT {STORED} AS is_new, {TIME})) {_over(keyed)}"
        later = f"{later} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
        time = f"IF(({later}).is_new, {time}, least({time}, ({later}).{TIME}))"
    return rows.withColumn(TIME, functions.expr(f"IF({STORED}, {TIME}, {time})"))


def _risen_time(keyed: Keyed) -> str:
    return f"(max(struct({_fields(keyed)}, {TIME})) {_over(keyed)})).{TIME}"


def _over(keyed: Keyed) -> str:
    """Returns SQL of a window over the rows of a key, partition by partition. Its parenthesis is open for a frame."""
    keys = ", ".join(map(identifier, keyed.keys))
    return f"OVER (PARTITION BY {keys} ORDER BY {_fields(keyed)}, {_OFFSET}"


def _fields(keyed: Keyed) -> str:
    return ", ".join(map(identifier, _log(keyed)))


def with_several(target: StagingTarget, rows: DataFrame) -> DataFrame:
    """Returns the rows, each with whether messages of its key are of several partitions, if the batch can have such keys."""
    from pyspark.sql import functions

    keyed, range_ = target.keyed, target.range_
    partitions = [partition for partition, end in range_.ends.items() if end > range_.starts.get(partition, 0)]
    if not keyed.partition or (len(partitions) < 2 and not target.pipeline.read_tables and not target.replays):
        return rows
    fields, keys = (", ".join(map(identifier, names)) for names in (keyed.partition, keyed.keys))
    minimum, maximum = (f"{function}(struct({fields})) OVER (PARTITION BY {keys})" for function in ("min", "max"))
    return rows.withColumn(SEVERAL, functions.expr(f"{minimum} <> {maximum}"))


def merged_time(keyed: Keyed, new: str, stored: str) -> str:
    """Returns SQL of the time of a new row beside the one that the table has."""
    return f"IF({_is_later(keyed, new, stored)}, greatest({new}.{TIME}, {stored}.{TIME}), {new}.{TIME})"


def is_before_stored(target: StagingTarget, rows: DataFrame, scan: Scan) -> bool:
    """Whether a row's time is before that of an earlier message of its key and partition, which was deleted or which the batch deletes.
    The MERGE finds other earlier messages in the table."""
    from pyspark.sql import DataFrame, functions

    keyed = target.keyed
    parts = [part for part in (deletes.all_deletes(target), _table(target, scan) if scan.deleted else None) if part is not None]
    if not parts or not keyed.partition:
        return False
    later = ranges.steps_back(target, rows, keyed.partition, TIME)
    columns = [identifier(name) for name in keyed.deletes_state.columns]
    stored = reduce(DataFrame.unionByName, (part.where(later).select(*columns) for part in parts))
    if stored.isEmpty():  # as long as no clock stepped back
        return False
    of_all = f" OR ({deletes.of_all(keyed)})" if keyed.truncates else ""
    condition = f"({by_key.same(keyed, 's', 't')}{of_all}) AND {_is_later(keyed, 's', 't')} AND t.{TIME} > s.{TIME}"
    return not stored.alias("t").join(rows.alias("s"), functions.expr(condition), "left_semi").isEmpty()


def beside_stored(target: StagingTarget, rows: DataFrame, scan: Scan) -> DataFrame:
    """Returns the rows with times that rise after those of earlier batches: of the keys' remembered deletes and rows in the table."""
    from pyspark.sql import DataFrame, functions

    keyed = target.keyed
    if not keyed.partition:
        return rows
    keys = rows.select(*map(identifier, keyed.keys)).distinct().alias("s")
    of_table = by_key.detached(_table(target, scan).join(keys, functions.expr(by_key.same(keyed, "s", "t")), "left_semi"))
    columns = [identifier(name) for name in keyed.deletes_state.columns]
    stored = reduce(DataFrame.unionByName, (part.select(*columns) for part in (of_table, *deletes.of_keys(target, rows))))
    all_rows = rows.withColumn(STORED, functions.lit(False))
    all_rows = all_rows.unionByName(stored.withColumn(STORED, functions.lit(True)), allowMissingColumns=True)
    return risen_beside(target, all_rows).where(f"NOT {STORED}").drop(STORED)


def _table(target: StagingTarget, scan: Scan) -> DataFrame:
    table: DataFrame = target.spark.table(target.attempt_branch).alias("t")
    return table.where(scan.near.sql or "true")


def _is_later(keyed: Keyed, new: str, stored: str) -> str:
    """Returns SQL of whether a row is the later one of a partition, or the same."""
    same = [f"{new}.{identifier(name)} <=> {stored}.{identifier(name)}" for name in _log(keyed)]
    return " AND ".join((*same, f"{new}.{_OFFSET} >= {stored}.{_OFFSET}"))


def _log(keyed: Keyed) -> tuple[str, ...]:
    """Returns the columns in which rows must be equal for their offsets to decide."""
    return (*keyed.order[: keyed.order.index(TIME)], *keyed.partition)
