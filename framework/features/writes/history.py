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
from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import DELETE, NTH
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import Target, by_key, deletes, events, ranges, rising
from framework.core.staging.merge import inserts, merge
from framework.core.staging.ranges import Near
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.documents.rows import Rows
from framework.documents.write_mode import WriteMode
from framework.plan import EVENT_TIME, IS_CURRENT, VERSION, Column, Keyed, Topic
from framework.sql.change_messages import changes_of
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OLD = "_sluice_old"  # whether it is a version that is in the table
_ENDED = "_sluice_ended"  # its end in the table
_NEXT = "_sluice_next"  # the order of the next event


def stage(to: Target, frame: Frame) -> Counted:
    keyed = to.keyed
    batch = events.batch_rows(to, frame)
    with ExitStack() as stack:
        stack.enter_context(cached_frame(batch))
        clears = keyed.truncates is not None and events.clears(batch)
        scan = ranges.Scan(1, Near("", False)) if clears else ranges.scan_keys(to, batch, keyed.keys)
        counted = to.counted(frame)
        if counted.unknown_schemas:
            return counted
        since = ranges.not_before(to, batch, "valid_to", keyed.order[0], to.column_types["valid_to"])
        near = Near(" AND ".join(filter(None, (scan.near.sql, since))), scan.near.listed)
        line = _in_order(to, events.spread(to, batch) if clears else batch, near.sql)
        merge(to, _versions(line, keyed), near, lambda view: _statement(to, view, near.sql))
        if scan.deleted:
            own = line.where(f"NOT {rising.STORED}") if keyed.partition else batch
            deletes.remember(to, events.without_spread(own, batch, keyed) if clears else own.where(DELETE))
    return counted


def _versions(line: DataFrame, keyed: Keyed) -> DataFrame:
    """The new versions, and those in the table whose end changes."""
    time = identifier(keyed.order[0])
    # Of equal ones, which are of one message, the last is the version.
    is_new = f"NOT {_OLD} AND NOT {DELETE} AND NOT {_NEXT} <=> {by_key.moment(keyed)}"
    ends_otherwise = f"{_OLD} AND NOT {_NEXT}.{time} <=> {_ENDED}"
    version = {"valid_from": time, "valid_to": f"{_NEXT}.{time}", IS_CURRENT: f"{_NEXT} IS NULL"}
    return line.where(f"({is_new}) OR ({ends_otherwise})").selectExpr("*", *(f"{sql} AS {name}" for name, sql in version.items()))


def _in_order(to: Target, batch: DataFrame, near: str) -> DataFrame:
    """The events of the batch's keys, each with the next event."""
    from pyspark.sql import functions

    keyed = to.keyed
    keys, order = (", ".join(map(identifier, names)) for names in (keyed.keys, keyed.order))
    over = f"PARTITION BY {keys} ORDER BY {order}, {_OLD}, {NTH}"
    before = f"OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    window_columns = {
        name: events.filled_value(name, marked, f"last({events.sent_value(name, marked)}, true) {before}")
        for name, marked in keyed.unsent
    }
    window_columns[_NEXT] = f"lead({by_key.moment(keyed)}) OVER ({over})"
    happened = rising.risen_beside(to, _happened(to, batch, near))
    return happened.withColumns({name: functions.expr(sql) for name, sql in window_columns.items()})


def _happened(to: Target, batch: DataFrame, near: str) -> DataFrame:
    from pyspark.sql import functions

    old = _in_table(to, batch, near)
    new = batch.withColumn(rising.STORED, functions.lit(False))
    parts = [new, old, _ends(old, to.keyed), *deletes.of_keys(to, batch)]
    events_frame: DataFrame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    # Ends of versions and remembered deletes are deletes.
    return events_frame.fillna({_OLD: False, DELETE: True, rising.STORED: True})


def _in_table(to: Target, batch: DataFrame, near: str) -> DataFrame:
    """The table's versions that had not ended before the batch's oldest row of their key."""
    from pyspark.sql import functions

    keyed = to.keyed
    time = identifier(keyed.order[0])
    since = batch.groupBy(*map(identifier, keyed.keys)).agg(functions.expr(f"min({time}) AS _sluice_since")).alias("s")
    table: DataFrame = to.spark.table(to.attempt_branch).alias("t")
    met = f"{by_key.same(keyed, 's', 't')} AND (t.valid_to IS NULL OR t.valid_to >= s._sluice_since)"
    names = dict.fromkeys([*keyed.keys, *keyed.order, *(name for name, _ in keyed.unsent)])
    columns = (f"t.{identifier(name)}" for name in names)
    versions = table.where(near or "true").join(since, functions.expr(met))
    versions = versions.selectExpr(*columns, f"true AS {_OLD}", f"t.valid_to AS {_ENDED}", f"false AS {DELETE}")
    # Other programs may have added the same row twice.
    return by_key.detached(versions.dropDuplicates([*dict.fromkeys([*keyed.keys, *keyed.order]), _ENDED]))


def _ends(old: DataFrame, keyed: Keyed) -> DataFrame:
    """The ends of versions as deletes, also where the delete itself is no longer remembered."""
    return old.where(f"{_ENDED} IS NOT NULL").selectExpr(
        *map(identifier, keyed.keys), f"{_ENDED} AS {identifier(keyed.order[0])}"
    )


def _statement(to: Target, view: str, near: str) -> Iterator[str]:
    keyed = to.keyed
    same = [by_key.same(keyed, "s", "t"), *(f"t.{identifier(name)} <=> s.{identifier(name)}" for name in keyed.order)]
    met = " AND ".join(filter(None, (f"s.{_OLD}", *same, f"t.valid_to <=> s.{_ENDED}", near)))
    yield f"MERGE INTO {to.attempt_branch} t USING {view} s ON {met}"
    yield f"WHEN MATCHED THEN UPDATE SET valid_to = s.valid_to, {IS_CURRENT} = s.{IS_CURRENT}"
    yield inserts(to, f"s.{_OLD}")


def _columns(keyed: Keyed, columns: Iterable[Column]) -> Iterator[Column]:
    time = next((column.type for column in columns if column.name == keyed.order[0]), VOID)
    for name, doc in VERSION.items():
        yield Column(name, BOOLEAN if name == IS_CURRENT else time, doc)


def _problems(into: WrittenInto, order: str, topics: tuple[Topic, ...], rows: Rows) -> Iterator[Problem]:
    """The problems of a history: it needs a time as its order."""
    column = next((each for each in (*rows.columns, *rows.kafka) if each.name == order), None)
    changes = changes_of(topics)
    is_time = order == EVENT_TIME or column is None or column.type in (TIMESTAMP, TIMESTAMP_NTZ, DATE, VOID)
    if into.order_by and column is not None and not is_time:
        message = f"`{order}` is {column.type}, and `write: history` needs a time: since when a row is valid"
        yield Problem(
            into.place("order_by"), "bad-order", message, "order by a time, or leave `order_by` out for Kafka's timestamp"
        )
    elif into.order_by and changes and column in rows.columns and order != changes.at.name and into.deletes != "ignore":
        hint = f"order by `{changes.at.name}`, or leave `order_by` out for Kafka's timestamp"
        yield Problem(into.place("order_by"), "bad-order", f"a delete has no `{order}`", hint)
    if order in into.keys:
        message = f"`{order}` is one of the keys, so all rows of a key have the same order"
        yield Problem(into.place("keys"), "bad-order", message, "leave it out of the keys, or order by another time")
    for each in rows.columns:
        if folded(each.name) in VERSION:
            message = f"`{each.name}` is a column that `write: history` adds itself"
            yield Problem(each.where or into.place("write"), "reserved-name", message, "rename it by a step: `rename: {…}`")


MODE = WriteMode(
    stage,
    does="keeps all versions of each key, with `valid_from`, `valid_to` and `is_current`",
    by_key=True,
    versions=True,
    problems=_problems,
    columns=_columns,
    changes={"inserted": "inserted", "ended": "matched-updated"},
)
