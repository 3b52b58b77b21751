"""Tables whose rows are totals: their columns, the order of the rows that are added up, and which rows come too late."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from framework.base.errors import Problem
from framework.base.types import BIGINT, INT, TIMESTAMP, Array, Field, Struct
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.documents.rows import Rows
from framework.plan import (
    ALL_ROWS,
    EVENT_TIME,
    FROM_COLUMNS,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    AllRows,
    Column,
    ColumnSql,
    Fault,
    PartitionField,
    Step,
    TableChanges,
    Topics,
)
from framework.plan.text import duration
from framework.plan.totals import MEASURES, NTH_ITEM, OPEN_SINCE, ROWS, TIME, WINDOW_END, WINDOW_START, Groups, Totals
from framework.sql import aggregates
from framework.sql.quote import identifier

_HIDDEN = Column(MEASURES, Struct(()), "What averages, different values, first and last values are computed from")


def plan_totals(
    spec: WrittenPipeline, groups: Groups | None, source: Topics | TableChanges | None, rows: Rows, steps: tuple[Step, ...]
) -> tuple[Totals | AllRows, tuple[Step, ...]]:
    """Returns the totals of the table, and the steps, of which `aggregate` now also refuses rows that come too late."""
    into = spec.into
    if groups is None:
        message = "`write: accumulate` keeps totals, and no step says which"
        hint = "end `steps` with `aggregate: {by: [symbol], measures: {trades: count(*)}}`"
        rows.problems.append(Problem(into.place("write"), "accumulate-needs-aggregate", message, hint))
        return ALL_ROWS, steps
    rows.problems.extend(_unused(into, groups))
    if not groups.measures:
        return ALL_ROWS, steps
    order = (
        tuple(_order(source, rows))
        if any(aggregates.FUNCTIONS[measure.function].first_counts for measure in groups.measures)
        else ()
    )
    window = replace(groups.window, late_after=into.late_after) if groups.window and into.late_after else groups.window
    own_names = {TIME, *(measure.row_column for measure in groups.measures)}
    by_name = {column.name: column for column in rows.columns}
    changes = isinstance(source, TableChanges) and source.reads == "changes"
    takes_off = changes and all(aggregates.takes_off(measure.function, measure.argument) for measure in groups.measures)
    nth = bool(order) and any(step.each for step in steps)
    accumulated = Totals(
        groups.by, window, groups.measures, order=order, nth=nth, takes_off=takes_off,
        hidden=_hidden(groups, _order_type(order, nth, rows), takes_off), before=_before(spec) if changes else "",
        rows=(
            *(by_name[name] for name in groups.by if name in by_name),
            *(column for column in rows.columns if column.name in own_names),
        ),
    )  # fmt: skip
    if window and window.late_after:
        steps = tuple(_with_late(step, window.column, window.late_after) if step.name == "aggregate" else step for step in steps)
    return accumulated, steps


def columns(accumulated: Totals) -> tuple[Column, ...]:
    """Returns the columns of the table: the group, its window, the measures, and what they are computed from."""
    group_columns = (column for column in accumulated.rows if column.name in accumulated.by)
    window = (
        (
            Column(WINDOW_START, TIMESTAMP, "Since when rows are in the window"),
            Column(WINDOW_END, TIMESTAMP, "Until when; not in it"),
        )
        if accumulated.window
        else ()
    )
    measures = (Column(measure.name, measure.type, measure.text) for measure in accumulated.measures)
    hidden = (replace(_HIDDEN, type=accumulated.hidden),) if accumulated.hidden else ()
    return (*group_columns, *window, *measures, *hidden)


def moving(accumulated: Totals, fields: Iterable[PartitionField], into: WrittenInto) -> Iterator[Problem]:
    """The problems of partitions in which a row would not stay."""
    measures = {measure.name for measure in accumulated.measures}
    for field in fields:
        if field.column in measures:
            message = f"`{field.column}` changes with each batch, and the row would have to move to another partition"
            hint = f"partition by {' or '.join(accumulated.keys)}" if accumulated.keys else "remove it: the table has one row"
            yield Problem(into.place("partition_by"), "bad-partition", message, hint)


def _unused(into: WrittenInto, groups: Groups) -> Iterator[Problem]:
    if into.node.get("kafka_columns") is not None:
        message = "`kafka_columns` has no effect: a total is of many messages"
        yield Problem(into.key_place("kafka_columns"), "unused-key", message, "remove it")
    if into.late_after is not None and groups.window is None:
        message = "`late_after` has no effect: without windows of time no row is too late"
        yield Problem(into.key_place("late_after"), "unused-key", message, "add a `window` to `aggregate`, or remove it")


def _order(source: Topics | TableChanges | None, rows: Rows) -> Iterator[str]:
    """The columns that say which of two rows is the first: the time, then the place in the source."""
    if isinstance(source, TableChanges):
        types = rows.types
        if source.event_time in types:
            yield source.event_time
        yield from (column.name for column in FROM_COLUMNS[2:] if column in rows.kafka)
        return
    if source and source.topics[0].event_time:
        yield EVENT_TIME
    yield from (column.name for column in (*KAFKA_COLUMNS[2:], *KAFKA_COLUMNS[:2]))
    if KAFKA_TOPIC in rows.kafka:
        yield KAFKA_TOPIC.name


def _hidden(groups: Groups, order_type: Struct, takes_off: bool) -> Struct | None:
    parts = {
        measure.name: aggregates.hidden(aggregates.function(measure.function, takes_off), measure.argument, order_type)
        for measure in groups.measures
        if measure.argument
    }
    fields = [
        Field(name, Struct(tuple(Field(part, type_) for part, type_ in types.items()))) for name, types in parts.items() if types
    ]
    if takes_off:
        fields.append(Field(ROWS, BIGINT))
    return Struct(tuple(fields)) if fields else None


def _order_type(order: Iterable[str], nth: bool, rows: Rows) -> Struct:
    fields = tuple(Field(f"n{index}", rows.types[name]) for index, name in enumerate(order))
    return Struct((*fields, Field(NTH_ITEM, Array(INT))) if nth else fields)


def _before(spec: WrittenPipeline) -> str:
    """Returns a digest of the steps and expectations before the totals. If it changes, the rows to be subtracted may not be
    the rows that were added."""
    quarantines = (
        expectation.node for expectation in spec.expect if not expectation.of_many and expectation.else_ in (None, "quarantine")
    )
    written = (*(step.node for step in spec.steps if step.name != "aggregate"), *quarantines)
    texts = [scalar.text for node in written for scalar in node.scalars()]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:8] if texts else ""


def _with_late(step: Step, column: str, late_after: int) -> Step:
    late = ColumnSql(f"coalesce({identifier(column)} < {OPEN_SINCE}, false)", (column,))
    message = f"its window had closed: a row {duration(late_after)} older than the newest one is too late"
    return replace(step, faults=(*step.faults, Fault("aggregate", "too_late", message, when=late)))
