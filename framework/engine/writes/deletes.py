"""Which keys were deleted, and how new they were: rows that are older and come late do not come back.

They are rows of the table itself, on branches that no reader sees: one for each day, so that what is long gone goes with its branch.
Guarantee: what a batch deletes is remembered by the commit that publishes the batch, or not at all.
Cost: the keys of the batch are looked up in these rows. A day's files are joined once there are many.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import TYPE_CHECKING, Any

from framework.engine import protocol
from framework.engine.writes import Target, keyed
from framework.plan.model import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MANY = 32  # files


def stage(to: Target, deleted: DataFrame, upsert: Upsert) -> None:
    """Adds the keys to those of today, on a branch of the attempt's."""
    from pyspark.sql import functions

    day = protocol.DELETES + _now().date().isoformat()
    files = to.lake.remember(to.table, to.attempt, day)
    rows = deleted.select(*dict.fromkeys([*upsert.keys, *upsert.order]))
    many = files >= _MANY
    if many:
        rows = keyed.newest(rows.unionByName(to.spark.table(to.branch(day)).select(*rows.columns)), upsert).coalesce(1)
    writer = rows.writeTo(to.branch(protocol.deletes_of(day, to.attempt))).option(
        f"snapshot-property.{protocol.ATTEMPT}", to.attempt
    )
    if many:
        writer.overwrite(functions.lit(True))
    else:
        writer.append()
    to.context.at("staged_deletes")


def without_late(to: Target, newest: DataFrame, upsert: Upsert, near: str) -> DataFrame:
    """The rows that are not older than a deletion of their key."""
    from pyspark.sql import DataFrame, functions

    days = sorted(name for name in to.table.refs() if protocol.is_day(name))
    if not days:
        return newest
    known = reduce(DataFrame.unionByName, (to.spark.table(to.branch(day)) for day in days)).alias("t")
    late = functions.expr(f"{keyed.same(upsert, 's', 't')} AND {keyed.newer(upsert, 't', 's')}")
    return newest.alias("s").join(known.where(near) if near else known, late, "left_anti")


def expired(table: Any, upsert: Upsert | None) -> tuple[str, ...]:
    """The days that need not be remembered any more."""
    if upsert is None:
        return ()
    until = protocol.DELETES + (_now() - timedelta(seconds=upsert.remember, days=1)).date().isoformat()
    return tuple(name for name in table.refs() if protocol.is_day(name) and name < until)


def _now() -> datetime:
    return datetime.now(timezone.utc)
