"""Deleted keys and the order of their deletes: late rows that are older stay deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from framework.core.staging import StagingTarget, by_key, state
from framework.plan import Keyed
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def remember(target: StagingTarget, deleted: DataFrame) -> None:
    """Adds the deleted keys to those of today. A row without keys is a delete of all keys."""
    keyed = target.keyed
    state.remember(
        target, keyed.deletes_state, deleted, None if keyed.versions else lambda rows: by_key.newest_per_key(rows, keyed)
    )


def without_late(target: StagingTarget, rows: DataFrame, near: str) -> DataFrame:
    """The rows that are not older than a deletion of their key."""
    from pyspark.sql import functions

    keyed, remembered = target.keyed, all_deletes(target)
    if remembered is None:
        return rows
    late = f"{by_key.same(keyed, 's', 't')} AND {by_key.newer(keyed, 't', 's')}"
    rows = rows.alias("s").join(remembered.where(near or "true"), functions.expr(late), "left_anti")
    if keyed.truncates:
        rows = rows.alias("s").join(remembered.where(of_all(keyed)), functions.expr(by_key.newer(keyed, "t", "s")), "left_anti")
    return rows


def of_keys(target: StagingTarget, batch: DataFrame) -> Iterator[DataFrame]:
    """The remembered deletes of the batch's keys."""
    from pyspark.sql import functions

    keyed, remembered = target.keyed, all_deletes(target)
    if remembered is None:
        return
    keys = batch.select(*map(identifier, keyed.keys)).distinct().alias("s")
    yield remembered.join(keys, functions.expr(by_key.same(keyed, "s", "t")), "left_semi")
    if keyed.truncates:
        yield keys.crossJoin(remembered.where(of_all(keyed)).drop(*keyed.keys))


def all_deletes(target: StagingTarget) -> DataFrame | None:
    """All deletes that are remembered, as `t`."""
    remembered = state.remembered(target, target.keyed.deletes_state)
    return None if remembered is None else remembered.alias("t")


def of_all(keyed: Keyed) -> str:
    """SQL of whether a remembered delete is a truncate, which has no keys."""
    return " AND ".join(f"t.{identifier(name)} IS NULL" for name in keyed.keys)
