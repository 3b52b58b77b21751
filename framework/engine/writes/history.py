"""All versions of each key, each with when it began and ended.

What happens to a key (a version of it comes, or its end) stands on a line of time: a version ends where the next thing happens. The line
is made of the batch, of those versions in the table that had not ended before the batch's oldest row of the key, of when they ended, and
of the deletes that are remembered.
Guarantee: the same versions come out of the same messages in any order and in any batches, as long as deletes are remembered. A message
that is read a second time, with the time and the offset that it had, adds nothing.
Cost: as an upsert, and the versions of a key that a late row comes before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import reduce
from typing import TYPE_CHECKING

from framework.engine.spark import row_frame
from framework.engine.spark.reading_errors import kept, named_errors
from framework.engine.spark.row_frame import DELETE, NTH, Counted, Frame
from framework.engine.writes import Target, by_key, deletes, events, ranges
from framework.engine.writes.merge import inserts, merge
from framework.engine.writes.ranges import Near
from framework.model import IS_CURRENT, Keyed
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OLD = "_sluice_old"  # whether it is a version that is in the table
_ENDED = "_sluice_ended"  # its end there
_NEXT = "_sluice_next"  # what happens next


def stage(to: Target, frame: Frame) -> Counted:
    keyed = to.keyed
    batch = events.of(to, frame)
    with ExitStack() as stack, named_errors(to.pipeline):
        stack.enter_context(kept(batch))
        clears = keyed.truncates is not None and events.clears(batch)
        deleted, near = (1, Near("", False)) if clears else ranges.look(to, batch, keyed.keys)
        counted = row_frame.counted(to.spark, to.pipeline, frame.observed)
        if counted.unknown:
            return counted
        since = ranges.not_before(to, batch, "valid_to", keyed.order[0], to.there["valid_to"])
        near = Near(" AND ".join(filter(None, (near.sql, since))), near.listed)
        spread = events.spread(to, batch) if clears else batch
        line = _line(to, spread, near.sql)
        merge(to, line, near, lambda view: _statement(to, view, near.sql))
        if deleted:
            deletes.stage(to, batch.where(DELETE))
    return counted


def _line(to: Target, batch: DataFrame, near: str) -> DataFrame:
    """The versions that are new, and those in the table whose end is another now."""
    keyed = to.keyed
    line, time = _in_order(to, batch, near), identifier(keyed.order[0])
    # Of equal ones, which are of one message, the last is the version.
    is_new = f"NOT {_OLD} AND NOT {DELETE} AND NOT {_NEXT} <=> {by_key.moment(keyed)}"
    ends_otherwise = f"{_OLD} AND NOT {_NEXT}.{time} <=> {_ENDED}"
    version = {"valid_from": time, "valid_to": f"{_NEXT}.{time}", IS_CURRENT: f"{_NEXT} IS NULL"}
    return line.where(f"({is_new}) OR ({ends_otherwise})").selectExpr("*", *(f"{sql} AS {name}" for name, sql in version.items()))


def _in_order(to: Target, batch: DataFrame, near: str) -> DataFrame:
    """What happens to the keys of the batch, each with what happens next."""
    from pyspark.sql import functions

    keyed = to.keyed
    keys, order = (", ".join(map(identifier, names)) for names in (keyed.keys, keyed.order))
    over = f"PARTITION BY {keys} ORDER BY {order}, {_OLD}, {NTH}"
    before = f"OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    made = {
        name: events.still(name, marked, f"last({events.known(name, marked)}, true) {before}") for name, marked in keyed.unsent
    }
    made[_NEXT] = f"lead({by_key.moment(keyed)}) OVER ({over})"
    return _happened(to, batch, near).withColumns({name: functions.expr(sql) for name, sql in made.items()})


def _happened(to: Target, batch: DataFrame, near: str) -> DataFrame:
    old = _in_table(to, batch, near)
    parts = [batch, old, _ends(old, to.keyed), *deletes.of_keys(to, batch)]
    found: DataFrame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    return found.fillna({_OLD: False, DELETE: True})  # what ended a version, or is remembered, deletes


def _in_table(to: Target, batch: DataFrame, near: str) -> DataFrame:
    """Those versions that had not ended before what is new of their keys."""
    from pyspark.sql import functions

    keyed = to.keyed
    time = identifier(keyed.order[0])
    since = batch.groupBy(*map(identifier, keyed.keys)).agg(functions.expr(f"min({time}) AS _sluice_since")).alias("s")
    known: DataFrame = to.spark.table(to.own).alias("t")
    met = f"{by_key.same(keyed, 's', 't')} AND (t.valid_to IS NULL OR t.valid_to >= s._sluice_since)"
    names = dict.fromkeys([*keyed.keys, *keyed.order, *(name for name, _ in keyed.unsent)])
    columns = (f"t.{identifier(name)}" for name in names)
    found = known.where(near or "true").join(since, functions.expr(met))
    found = found.selectExpr(*columns, f"true AS {_OLD}", f"t.valid_to AS {_ENDED}", f"false AS {DELETE}")
    # Other programs may have added the same row twice.
    return by_key.apart(found.dropDuplicates([*dict.fromkeys([*keyed.keys, *keyed.order]), _ENDED]))


def _ends(old: DataFrame, keyed: Keyed) -> DataFrame:
    """Where versions ended: something was there, even if the delete is not remembered any more."""
    return old.where(f"{_ENDED} IS NOT NULL").selectExpr(
        *map(identifier, keyed.keys), f"{_ENDED} AS {identifier(keyed.order[0])}"
    )


def _statement(to: Target, view: str, near: str) -> Iterator[str]:
    keyed = to.keyed
    same = [by_key.same(keyed, "s", "t"), *(f"t.{identifier(name)} <=> s.{identifier(name)}" for name in keyed.order)]
    met = " AND ".join(filter(None, (f"s.{_OLD}", *same, f"t.valid_to <=> s.{_ENDED}", near)))
    yield f"MERGE INTO {to.own} t USING {view} s ON {met}"
    yield f"WHEN MATCHED THEN UPDATE SET valid_to = s.valid_to, {IS_CURRENT} = s.{IS_CURRENT}"
    yield inserts(to, f"s.{_OLD}")
