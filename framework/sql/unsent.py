"""Values of changes that were not sent, since they had not changed: a marker stands in their place.

A column that passes all steps unchanged keeps the value that the table has. A message whose unsent value a step reads is a bad
row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from framework.base.types import Type
from framework.plan import Column, Fault, Step, Topic, columns_read
from framework.sql.change_messages import is_one_of
from framework.sql.quote import identifier

_WHY = "the database did not send `{}`, which has not changed, and the spec needs it: give the table REPLICA IDENTITY FULL"


def carried(
    topic: Topic, steps: Sequence[Step], rows: Sequence[Column], excluded_names: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """Columns after the steps whose value may not have been sent, and SQL over `?` that is true if it was not sent."""
    columns, _ = _followed(topic, steps, ())
    row_types = {column.name: column.type for column in rows if column.name not in set(excluded_names)}
    return tuple((name, _unsent(topic, column.type)) for name, column in columns.items() if row_types.get(name) == column.type)


def refused(topic: Topic, steps: Sequence[Step], *extra_sql: str | None) -> Topic:
    """The topic, with a fault for each column that a step, or `extra_sql`, reads: a message that did not send its value is a bad
    row."""
    _, read_names = _followed(topic, steps, extra_sql)
    sql = dict(topic.decoding.columns)
    if not read_names or not topic.changes or topic.changes.op.name not in sql:
        return topic
    changes = is_one_of(topic, topic.changes.writes)
    faults = (
        Fault(
            "value",
            "value_not_sent",
            _WHY.format(column.name),
            when=f"{changes} AND {holds(_unsent(topic, column.type), sql[column.name])}",
        )
        for column in topic.columns
        if column.name in read_names
    )
    return replace(topic, decoding=replace(topic.decoding, faults=(*topic.decoding.faults, *faults)))


def _unsent(topic: Topic, type_: Type) -> str:
    return topic.changes.unsent(type_) if topic.changes else ""


def holds(marked: str, column: str) -> str:
    """The SQL of `marked`, with the column in place of `?`."""
    return marked.replace("?", column)


def _followed(topic: Topic, steps: Sequence[Step], extra_sql: Iterable[str | None]) -> tuple[dict[str, Column], set[str]]:
    """The topic's columns that pass the steps unchanged, by their names after the steps, and the names of columns that are
    read."""
    columns = {column.name: column for column in topic.columns if _unsent(topic, column.type)}
    read_names: set[str] = set()
    for step in steps:
        read_names |= {columns[name].name for sql in _texts(step, columns) if sql for name in columns_read(sql, columns)}
        assigned = {name: columns.get(_only(sql, columns)) for name, sql in step.assign}
        assigned |= {step.each.into: None} if step.each else {}
        columns = {name: column for name, column in {**columns, **assigned}.items() if column}
        columns = {column.name: columns[column.name] for column in step.columns if column.name in columns}
    read_after_steps = {name for sql in extra_sql if sql for name in columns_read(sql, columns)}
    read_after_steps |= {name for step in steps if step.memory for name in step.memory.columns} & columns.keys()
    return columns, read_names | {columns[name].name for name in read_after_steps}


def _texts(step: Step, columns: Iterable[str]) -> Iterator[str | None]:
    yield from (sql for _, sql in step.assign if not _only(sql, columns))
    yield from (fault.when for fault in step.faults)
    yield from (step.keep, step.each.list if step.each else None)


def _only(sql: str, columns: Iterable[str]) -> str:
    """The column that is the whole SQL; empty if the SQL is anything else."""
    return next((name for name in columns if sql == identifier(name)), "")
