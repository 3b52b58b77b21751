"""Rows by their keys, as SQL and frames: which are of one key, and which of these is the newest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from framework.plan import Keyed
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def same(keyed: Keyed, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{identifier(name)} = {other}.{identifier(name)}" for name in keyed.keys)


def newer(keyed: Keyed, one: str, other: str) -> str:
    """SQL of whether one row is newer than another. In a struct null is the least."""
    return " > ".join(moment(keyed, f"{each}.") for each in (one, other))


def moment(keyed: Keyed, of: str = "", changed: Mapping[str, str] | None = None) -> str:
    """SQL of a row's order as one value: the newer of two rows has the greater one. `changed` is SQL in place of columns."""
    return f"struct({', '.join((changed or {}).get(name) or f'{of}{identifier(name)}' for name in keyed.order)})"


def newest_first(keyed: Keyed, *then: str) -> str:
    """SQL of a window over the rows of each key. Of equal ones those come first in which the columns `then` are greater."""
    keys = ", ".join(map(identifier, keyed.keys))
    return f"PARTITION BY {keys} ORDER BY {', '.join(f'{identifier(name)} DESC NULLS LAST' for name in (*keyed.order, *then))}"


def newest_per_key(rows: DataFrame, keyed: Keyed, *then: str) -> DataFrame:
    """One row of each key."""
    ranked = rows.selectExpr("*", f"row_number() OVER ({newest_first(keyed, *then)}) AS _sluice_rank")
    return ranked.where("_sluice_rank = 1").drop("_sluice_rank", *then)


def detached(rows: DataFrame) -> DataFrame:
    """The rows, detached from their plan: a MERGE mistakes its own table's columns in its source for those of its target."""
    return rows.localCheckpoint(eager=False)
