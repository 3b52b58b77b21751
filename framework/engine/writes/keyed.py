"""Rows by their keys, as SQL and frames: which are of one key, and which of these is the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.plan.model import Upsert
from framework.plan.rows import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def same(upsert: Upsert, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{named(name)} = {other}.{named(name)}" for name in upsert.keys)


def newer(upsert: Upsert, one: str, other: str) -> str:
    """SQL of whether one row is newer than another. In a struct null is the least."""
    return " > ".join(f"struct({', '.join(f'{each}.{named(name)}' for name in upsert.order)})" for each in (one, other))


def newest(rows: DataFrame, upsert: Upsert, *then: str) -> DataFrame:
    """One row of each key; of equal ones the one in which the columns `then` are greater."""
    keys = ", ".join(map(named, upsert.keys))
    order = ", ".join(f"{named(name)} DESC NULLS LAST" for name in (*upsert.order, *then))
    made = rows.selectExpr("*", f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS _sluice_rank")
    return made.where("_sluice_rank = 1").drop("_sluice_rank", *then)
