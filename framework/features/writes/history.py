"""All versions of each key, each with when it began and ended.

The events of a key (a new version, or an end) are put in order of time: a version ends at the next event. The events are those of the
batch, the table's versions that had not ended before the batch's oldest row of the key, their ends, and the remembered deletes.
Guarantee: the same versions come out of the same messages in any order and in any batches, as long as deletes are remembered. A message
that is read a second time, with the same time and offset, adds nothing.
Cost: that of an upsert, and a read of the versions that a late row precedes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import reduce
from typing import TYPE_CHECKING

from framework.base.errors import Problem
from framework.base.types import BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID, folded
from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import DELETE, NTH
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import StagingTarget, by_key, deletes, events, ranges, rising
from framework.core.staging.merge import inserts, merge
from framework.core.staging.ranges import KeyRange
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.documents.rows import Rows
from framework.documents.write_mode import WriteMode
from framework.plan import EVENT_TIME, IS_CURRENT, VERSION, Column, Keyed, Topic
from framework.sql.change_messages import changes_of
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OLD = "_sluice_old"  # whether the row is a version of the table
_ENDED = "_sluice_ended"  # the version's end in the table
_NEXT_ORDER = "_sluice_next"  # the order of the next event


def stage(target: StagingTarget, frame: Frame) -> BatchCounts:
    keyed = target.keyed
    batch = events.batch_rows(target, frame)
    with ExitStack() as stack:
        stack.enter_context(cached_frame(batch))
        has_truncate = keyed.truncates is not None and events.clears(batch)
        scan = ranges.Scan(1, KeyRange("", False)) if has_truncate else ranges.scan_keys(target, batch, keyed.keys)
        counted = target.counted(frame)
        if counted.unknown_schemas:
            return counted
        since = ranges.not_before(target, batch, "valid_to", keyed.order[0], target.column_types["valid_to"])
        near = KeyRange(" AND ".join(filter(None, (scan.near.sql, since))), scan.near.listed)
        ordered_events = _in_order(target, events.spread(target, batch) if has_truncate else batch, near.sql)
        merge(target, _versions(ordered_events, keyed), near, lambda view: _statement(target, view, near.sql))
        if scan.deleted:
            own_rows = ordered_events.where(f"NOT {rising.STORED}") if keyed.partition else batch
            deletes.remember(target, events.without_spread(own_rows, batch, keyed) if has_truncate else own_rows.where(DELETE))
    return counted


def _versions(ordered_events: DataFrame, keyed: Keyed) -> DataFrame:
    """The new versions, and the table's versions whose end changes."""
    time = identifier(keyed.order[0])
    # Of events with equal order, which come from one message, the last is the version.
    is_new = f"NOT {_OLD} AND NOT {DELETE} AND NOT {_NEXT_ORDER} <=> {by_key.moment(keyed)}"
    ends_otherwise = f"{_OLD} AND NOT {_NEXT_ORDER}.{time} <=> {_ENDED}"
    version = {"valid_from": time, "valid_to": f"{_NEXT_ORDER}.{time}", IS_CURRENT: f"{_NEXT_ORDER} IS NULL"}
    return ordered_events.where(f"({is_new}) OR ({ends_otherwise})").selectExpr(
        "*", *(f"{sql} AS {name}" for name, sql in version.items())
    )


def _in_order(target: StagingTarget, batch: DataFrame, near: str) -> DataFrame:
    """The events of the batch's keys, each with the next event."""
    from pyspark.sql import functions

    keyed = target.keyed
    keys, order = (", ".join(map(identifier, names)) for names in (keyed.keys, keyed.order))
    over = f"PARTITION BY {keys} ORDER BY {order}, {_OLD}, {NTH}"
    earlier_window = f"OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    window_columns = {
        name: events.filled_value(name, marked, f"last({events.sent_value(name, marked)}, true) {earlier_window}")
        for name, marked in keyed.unsent
    }
    window_columns[_NEXT_ORDER] = f"lead({by_key.moment(keyed)}) OVER ({over})"
    event_rows = rising.risen_beside(target, _happened(target, batch, near))
    return event_rows.withColumns({name: functions.expr(sql) for name, sql in window_columns.items()})


def _happened(target: StagingTarget, batch: DataFrame, near: str) -> DataFrame:
    from pyspark.sql import functions

    old_rows = _in_table(target, batch, near)
    new_rows = batch.withColumn(rising.STORED, functions.lit(False))
    parts = [new_rows, old_rows, _ends(old_rows, target.keyed), *deletes.of_keys(target, batch)]
    events_frame: DataFrame = reduce(
        lambda first_part, second_part: first_part.unionByName(second_part, allowMissingColumns=True), parts
    )
    # Ends of versions and remembered deletes are deletes.
    return events_frame.fillna({_OLD: False, DELETE: True, rising.STORED: True})


def _in_table(target: StagingTarget, batch: DataFrame, near: str) -> DataFrame:
    """The table's versions that had not ended before the batch's oldest row of their key."""
    from pyspark.sql import functions

    keyed = target.keyed
    time = identifier(keyed.order[0])
    oldest_times = batch.groupBy(*map(identifier, keyed.keys)).agg(functions.expr(f"min({time}) AS _sluice_since")).alias("s")
    table: DataFrame = target.spark.table(target.attempt_branch).alias("t")
    condition = f"{by_key.same(keyed, 's', 't')} AND (t.valid_to IS NULL OR t.valid_to >= s._sluice_since)"
    names = dict.fromkeys([*keyed.keys, *keyed.order, *(name for name, _ in keyed.unsent)])
    columns = (f"t.{identifier(name)}" for name in names)
    versions = table.where(near or "true").join(oldest_times, functions.expr(condition))
    versions = versions.selectExpr(*columns, f"true AS {_OLD}", f"t.valid_to AS {_ENDED}", f"false AS {DELETE}")
    # Other programs may have added the same row twice.
    return by_key.detached(versions.dropDuplicates([*dict.fromkeys([*keyed.keys, *keyed.order]), _ENDED]))


def _ends(old_rows: DataFrame, keyed: Keyed) -> DataFrame:
    """The ends of versions as deletes, also where the delete itself is no longer remembered."""
    return old_rows.where(f"{_ENDED} IS NOT NULL").selectExpr(
        *map(identifier, keyed.keys), f"{_ENDED} AS {identifier(keyed.order[0])}"
    )


def _statement(target: StagingTarget, view: str, near: str) -> Iterator[str]:
    keyed = target.keyed
    equal_columns = [by_key.same(keyed, "s", "t"), *(f"t.{identifier(name)} <=> s.{identifier(name)}" for name in keyed.order)]
    condition = " AND ".join(filter(None, (f"s.{_OLD}", *equal_columns, f"t.valid_to <=> s.{_ENDED}", near)))
    yield f"MERGE INTO {target.attempt_branch} t USING {view} s ON {condition}"
    yield f"WHEN MATCHED THEN UPDATE SET valid_to = s.valid_to, {IS_CURRENT} = s.{IS_CURRENT}"
    yield inserts(target, f"s.{_OLD}")


def _columns(keyed: Keyed, columns: Iterable[Column]) -> Iterator[Column]:
    time_type = next((column.type for column in columns if column.name == keyed.order[0]), VOID)
    for name, doc in VERSION.items():
        yield Column(name, BOOLEAN if name == IS_CURRENT else time_type, doc)


def _problems(into: WrittenInto, order: str, topics: tuple[Topic, ...], rows: Rows) -> Iterator[Problem]:
    """The problems of the options: a history needs a time as its order, and its own column names."""
    order_column = next((column for column in (*rows.columns, *rows.kafka) if column.name == order), None)
    changes = changes_of(topics)
    is_time = order == EVENT_TIME or order_column is None or order_column.type in (TIMESTAMP, TIMESTAMP_NTZ, DATE, VOID)
    if into.order_by and order_column is not None and not is_time:
        message = f"`{order}` is {order_column.type}, and `write: history` needs a time: since when a row is valid"
        yield Problem(
            into.place("order_by"), "bad-order", message, "order by a time, or leave `order_by` out for Kafka's timestamp"
        )
    elif into.order_by and changes and order_column in rows.columns and order != changes.at.name and into.deletes != "ignore":
        hint = f"order by `{changes.at.name}`, or leave `order_by` out for Kafka's timestamp"
        yield Problem(into.place("order_by"), "bad-order", f"a delete has no `{order}`", hint)
    if order in into.keys:
        message = f"`{order}` is one of the keys, so all rows of a key have the same order"
        yield Problem(into.place("keys"), "bad-order", message, "leave it out of the keys, or order by another time")
    for column in rows.columns:
        if folded(column.name) in VERSION:
            message = f"`{column.name}` is a column that `write: history` adds itself"
            yield Problem(column.where or into.place("write"), "reserved-name", message, "rename it by a step: `rename: {…}`")


MODE = WriteMode(
    stage,
    does="keeps all versions of each key, with `valid_from`, `valid_to` and `is_current`",
    by_key=True,
    versions=True,
    problems=_problems,
    columns=_columns,
    changes={"inserted": "inserted", "ended": "matched-updated"},
)
