"""Follow a row's time through the steps: the columns that hold it, and the step that changes or removes it.

The time of a row is the topic's `event_time`, else Kafka's timestamp. A step may rename or copy its column. Where no column of the table
holds it any more, nothing else stands in for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework.base.types import TIMESTAMP
from framework.plan import EVENT_TIME, FROM_COLUMNS, KAFKA_COLUMNS, KAFKA_TOPIC, Column, Step
from framework.sql.quote import identifier

_SET_BY_NO_STEP = {EVENT_TIME, *(column.name for column in (KAFKA_TOPIC, *KAFKA_COLUMNS, *FROM_COLUMNS))}


@dataclass(frozen=True)
class RowTime:
    """The table's `column` with the time of a row; None where the table does not keep it. `lost_by` is the step that changed or removed
    `last_column`, the last column that held the time."""

    column: str | None
    source_column: str  # of the rows before the first step
    last_column: str
    lost_by: Step | None = None


def holders(names: Iterable[str], step: Step) -> frozenset[str]:
    """Return the columns that hold a value after the step, given the `names` of those that held it before."""
    names_before = frozenset(names)
    columns = {column.name for column in step.columns}
    joined_names = step.join.take if step.join else ()
    computed_names = {*dict(step.assign), *joined_names, *((step.each.into,) if step.each else ())}
    quoted_names = {identifier(name) for name in names_before}
    kept_names = {name for name in names_before if name in _SET_BY_NO_STEP or (name in columns and name not in computed_names)}
    copied_names = {name for name, sql in step.assign if name in columns and sql in quoted_names}
    return frozenset(kept_names | copied_names)


def holders_after(name: str, steps: Iterable[Step]) -> frozenset[str]:
    """Return the columns that hold the value of the column `name` after all of these steps."""
    names = frozenset({name})
    for step in steps:
        names = holders(names, step)
    return names


def row_time(source_column: str, steps: Iterable[Step], columns: Iterable[Column]) -> RowTime:
    """Find the time of a row among the `columns` of the table."""
    names, last_column, lost_by = frozenset({source_column}), source_column, None
    for step in steps:
        names = holders(names, step)
        if not names:
            lost_by = step
            break
        last_column = source_column if source_column in names else min(names)
    timestamps = [column.name for column in columns if column.type == TIMESTAMP]
    kept_name = next((name for name in (last_column, *timestamps) if name in names and name in timestamps), None)
    return RowTime(kept_name or (EVENT_TIME if EVENT_TIME in timestamps else None), source_column, last_column, lost_by)
