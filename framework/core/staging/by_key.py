"""Rows by their keys, as SQL and frames: which are of one key, and which of these is the newest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from framework.plan import Keyed
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def same(keyed: Keyed, alias: str, other_alias: str) -> str:
    return " AND ".join(f"{alias}.{identifier(name)} = {other_alias}.{identifier(name)}" for name in keyed.keys)


def newer(keyed: Keyed, alias: str, other_alias: str) -> str:
    """SQL of whether one row is newer than another. In a struct null is the least."""
    return " > ".join(moment(keyed, f"{row_alias}.") for row_alias in (alias, other_alias))


def moment(keyed: Keyed, prefix: str = "", changed: Mapping[str, str] | None = None) -> str:
    """SQL of a row's order as one value: the newer of two rows has the greater one. `changed` is SQL in place of columns."""
    return f"struct({', '.join((changed or {}).get(name) or f'{prefix}{identifier(name)}' for name in keyed.order)})"


def newest_first(keyed: Keyed, *tie_columns: str) -> str:
    """SQL of a window over the rows of each key, the newest first. Among equally new rows, those with greater `tie_columns` come first."""
    keys = ", ".join(map(identifier, keyed.keys))
    return f"PARTITION BY {keys} ORDER BY {', '.join(f'{identifier(name)} DESC NULLS LAST' for name in (*keyed.order, *tie_columns))}"


def newest_per_key(rows: DataFrame, keyed: Keyed, *tie_columns: str) -> DataFrame:
    """The newest row of each key."""
    ranked = rows.selectExpr("*", f"row_number() OVER ({newest_first(keyed, *tie_columns)}) AS _sluice_rank")
    return ranked.where("_sluice_rank = 1").drop("_sluice_rank", *tie_columns)


def detached(rows: DataFrame) -> DataFrame:
    """The rows, detached from their plan: a MERGE mistakes its own table's columns in its source for those of its target."""
    return rows.localCheckpoint(eager=False)
