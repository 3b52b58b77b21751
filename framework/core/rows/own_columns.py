"""Columns of Sluice's own that rows carry on their way, and what they say of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.plan import EVENT_TIME, FROM_COLUMNS, OLD, AllRows, Keyed, Pipeline, Rule
from framework.plan.totals import OPEN_SINCE, Totals
from framework.sql.quote import substituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Of rows by keys: whether the row deletes those of its key, its number in its message, and whether it deletes those of all keys.
DELETE, NTH, TRUNCATES = "_sluice_delete", "_sluice_nth", "_sluice_truncates"
SEVERAL = "_sluice_several"  # of rows by keys: whether messages of the key are of several partitions
ONLY = "_sluice_only"  # of a replayed message: which items of its list were bad; '' is the whole message
NAMES = (EVENT_TIME, *(column.name for column in FROM_COLUMNS))
WHOLE = "CAST(NULL AS STRING)"  # a bad row's item where the whole message is bad, and its cause where its fault has none


def own_columns(pipeline: Pipeline) -> dict[str, str]:
    """Sluice's own columns, which each row carries because of a step."""
    columns = {}
    keep = pipeline.decoding.keep
    if keep or pipeline.explodes or any(step.keep for step in pipeline.steps):
        columns["_sluice_keep"] = keep or "true"
    if pipeline.explodes:
        columns["_sluice_first"], columns["_sluice_item"] = "true", WHOLE
    return columns | _of_rule(pipeline.table.rule)


def _of_rule(rule: Rule) -> dict[str, str]:
    """The columns by which the table's rule judges a row."""
    match rule:
        case Keyed(ends=ends, truncates=truncates):
            return {name: sql for name, sql in (("_sluice_tombstone", ends), (TRUNCATES, truncates)) if sql}
        case Totals(late_after=late_after) if late_after:
            return {OPEN_SINCE: OPEN_SINCE}
        case Totals() | AllRows():
            return {}


def with_open_since(rows: DataFrame, pipeline: Pipeline, newest_time: int) -> DataFrame:
    """Messages or rows, with the time before which windows are closed, from the newest time of earlier batches in microseconds."""
    totals = pipeline.table.rule
    if not isinstance(totals, Totals) or not totals.late_after:
        return rows
    open_since = f"timestamp_micros({newest_time - totals.late_after * 1_000_000}L)" if newest_time else "CAST(NULL AS TIMESTAMP)"
    return rows.selectExpr("*", f"{open_since} AS {OPEN_SINCE}")


def is_good(columns: list[str]) -> str:
    """SQL of whether a row is kept and good so far."""
    return "_sluice_bad IS NULL AND _sluice_keep" if "_sluice_keep" in columns else "_sluice_bad IS NULL"


def is_checked(columns: list[str], of_tombstones: bool = False) -> str:
    """SQL of whether a row is good and is checked by steps and expectations."""
    checked = f"{is_good(columns)} AND NOT {OLD}" if OLD in columns else is_good(columns)
    return f"{checked} AND NOT _sluice_tombstone" if "_sluice_tombstone" in columns and not of_tombstones else checked


def or_tombstone(columns: list[str], keep: str) -> str:
    """SQL of whether a step keeps a row; no step drops a tombstone."""
    return f"(_sluice_tombstone OR {keep})" if "_sluice_tombstone" in columns else f"({keep})"


def of_bad_item(columns: list[str]) -> str:
    """SQL of whether a row of a replayed message was bad, is part of a bad row, or holds one."""
    if "_sluice_item" not in columns:
        return "true"
    row = "coalesce(_sluice_item, '')"
    part = f"bad IN ('', {row}) OR startswith({row}, concat(bad, '.')) OR startswith(bad, concat({row}, '.'))"
    return f"{row} = '' OR exists({ONLY}, bad -> {part})"


def with_text(sql: str) -> str:
    """Replaces `_sluice_text` in SQL by the message's value as text."""
    return substituted(sql, {"_sluice_text": "CAST(_sluice_value AS STRING)"})
