"""Which keys were deleted, and how new they were: rows that are older and come late do not come back.

They are rows of the table itself, on branches that no reader sees: one for each day, so that what is long gone goes with its branch.
Guarantee: what a batch deletes is remembered by the commit that publishes the batch, or not at all.
Cost: the keys of the batch are looked up in these rows. A day's files are joined once there are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import TYPE_CHECKING, Any

from framework.engine.iceberg import remembered_deletes
from framework.engine.rules import protocol
from framework.engine.writes import Target, by_key
from framework.model import Keyed
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MANY = 32  # files


def stage(to: Target, deleted: DataFrame) -> None:
    """Adds the keys to those of today, on a branch of the attempt's. One without keys is of all of them."""
    from pyspark.sql import functions

    keyed = to.keyed
    day = protocol.DELETES + _now().date().isoformat()
    files = to.lake.remember(to.table, to.attempt, day)
    rows = deleted.select(*map(identifier, dict.fromkeys([*keyed.keys, *keyed.order])))
    many = files >= _MANY
    if many:
        rows = rows.unionByName(to.spark.table(to.branch(day)).select(*map(identifier, rows.columns)))
        rows = (rows.distinct() if keyed.versions else by_key.newest(rows, keyed)).coalesce(1)
    writer = rows.writeTo(to.branch(protocol.deletes_of(day, to.attempt))).option(
        f"snapshot-property.{protocol.ATTEMPT}", to.attempt
    )
    if many:
        writer.overwrite(functions.lit(True))
    else:
        writer.append()
    to.context.at("staged_deletes")


def without_late(to: Target, newest: DataFrame, near: str) -> DataFrame:
    """The rows that are not older than a deletion of their key."""
    from pyspark.sql import functions

    keyed, known = to.keyed, _known(to)
    if known is None:
        return newest
    late = f"{by_key.same(keyed, 's', 't')} AND {by_key.newer(keyed, 't', 's')}"
    newest = newest.alias("s").join(known.where(near or "true"), functions.expr(late), "left_anti")
    if keyed.truncates:
        newest = newest.alias("s").join(known.where(_of_all(keyed)), functions.expr(by_key.newer(keyed, "t", "s")), "left_anti")
    return newest


def of_keys(to: Target, batch: DataFrame) -> Iterator[DataFrame]:
    """When keys of the batch were deleted."""
    from pyspark.sql import functions

    keyed, known = to.keyed, _known(to)
    if known is None:
        return
    names = [*keyed.keys, *(name for name in keyed.order if name not in keyed.keys)]
    keys = batch.select(*map(identifier, keyed.keys)).distinct().alias("s")
    yield known.join(keys, functions.expr(by_key.same(keyed, "s", "t")), "left_semi").select(*map(identifier, names))
    if keyed.truncates:
        yield keys.crossJoin(known.where(_of_all(keyed)).drop(*keyed.keys)).select(*map(identifier, names))


def _known(to: Target) -> DataFrame | None:
    from pyspark.sql import DataFrame

    days = sorted(remembered_deletes.days(to.table))
    return reduce(DataFrame.unionByName, (to.spark.table(to.branch(day)) for day in days)).alias("t") if days else None


def _of_all(keyed: Keyed) -> str:
    """SQL of a truncate, which has no keys."""
    return " AND ".join(f"{identifier(name)} IS NULL" for name in keyed.keys)


def expired(table: Any, keyed: Keyed | None) -> tuple[str, ...]:
    """The days that need not be remembered any more."""
    if keyed is None:
        return ()
    until = protocol.DELETES + (_now() - timedelta(seconds=keyed.remember, days=1)).date().isoformat()
    return tuple(name for name in remembered_deletes.days(table) if name < until)


def _now() -> datetime:
    return datetime.now(timezone.utc)
