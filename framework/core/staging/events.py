"""The changes of a batch to the keys of a table: its rows with the table's types, in their order.

A truncate is a delete of each key. A value that was not sent, because it has not changed, is that of the row before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import DELETE, NTH, TRUNCATES
from framework.core.staging import StagingTarget, by_key
from framework.plan import Keyed
from framework.plan.change import stored
from framework.sql import unsent
from framework.sql.quote import identifier
from framework.sql.reshaping import reshaped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def batch_rows(target: StagingTarget, frame: Frame) -> DataFrame:
    """The batch's rows with the table's types, which may be wider."""
    columns = (
        (identifier(column.name), stored(column.type), target.column_types[column.name]) for column in target.pipeline.table.sent
    )
    columns_sql = (f"{reshaped(name, of_batch, of_table)} AS {name}" for name, of_batch, of_table in columns)
    return target.rows(frame).selectExpr(*columns_sql, DELETE, NTH, *([TRUNCATES] if target.keyed.truncates else []))


def clears(batch: DataFrame) -> bool:
    """Whether the batch has a truncate."""
    return not batch.where(TRUNCATES).isEmpty()


def spread(target: StagingTarget, batch: DataFrame) -> DataFrame:
    """The batch with each truncate replaced by deletes of all keys in the table and in the batch."""
    keys = target.keyed.keys
    rows = batch.where(f"NOT {TRUNCATES}")
    all_keys = (
        by_key.detached(target.spark.table(target.attempt_branch).select(*map(identifier, keys)))
        .unionByName(rows.select(*map(identifier, keys)))
        .distinct()
    )
    deleted = all_keys.crossJoin(batch.where(TRUNCATES).drop(*keys))
    return rows.unionByName(deleted.select(*map(identifier, batch.columns)))


def without_spread(rows: DataFrame, batch: DataFrame, keyed: Keyed) -> DataFrame:
    """The rows that delete one key, and the batch's truncates, each as one row."""
    columns = [identifier(name) for name in keyed.deletes_state.columns]
    deleted, truncates = rows.where(f"{DELETE} AND NOT {TRUNCATES}"), batch.where(TRUNCATES)
    return deleted.select(*columns).unionByName(truncates.select(*columns))


def filled(batch: DataFrame, keyed: Keyed) -> DataFrame:
    """The batch with values that were not sent filled from its earlier rows."""
    from pyspark.sql import functions

    if not keyed.unsent:
        return batch
    over = f"OVER ({by_key.newest_first(keyed, NTH)} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    columns_sql = {
        name: filled_value(name, marked, f"first({sent_value(name, marked)}, true) {over}") for name, marked in keyed.unsent
    }
    return batch.withColumns({name: functions.expr(sql) for name, sql in columns_sql.items()})


def sent_value(name: str, marked: str) -> str:
    """SQL of a value that was sent, in a struct: it may be null."""
    return f"IF({DELETE} OR {unsent.holds(marked, identifier(name))}, NULL, named_struct('value', {identifier(name)}))"


def filled_value(name: str, marked: str, earlier_value: str) -> str:
    """SQL of a column, with `earlier_value` where its value was not sent. Where there is none, the marker stays."""
    is_unsent = unsent.holds(marked, identifier(name))
    return f"CASE WHEN {is_unsent} AND {earlier_value} IS NOT NULL THEN ({earlier_value}).value ELSE {identifier(name)} END"
