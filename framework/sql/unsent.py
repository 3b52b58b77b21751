"""Values of changes that were not sent, since they had not changed: a marker stands in their place.

A column that comes through all steps as it is takes the value that was there before. A step that looks at one cannot know it: then it
is a bad row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from framework.base.types import Type
from framework.plan import Column, Fault, Step, Topic, columns_read
from framework.sql.change_messages import is_one_of
from framework.sql.quote import identifier

_WHY = "the database did not send `{}`, which has not changed, and the spec needs it: give the table REPLICA IDENTITY FULL"


def carried(topic: Topic, steps: Sequence[Step], rows: Sequence[Column], but: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Columns behind the steps whose value may not have been sent, and SQL over `?` of whether it was not."""
    columns, _ = _followed(topic, steps, ())
    there = {column.name: column.type for column in rows if column.name not in set(but)}
    return tuple((name, _unsent(topic, column.type)) for name, column in columns.items() if there.get(name) == column.type)


def refused(topic: Topic, steps: Sequence[Step], *more: str | None) -> Topic:
    """The topic, of which a message is a bad row where a step, or other SQL over its columns, needs a value that was not sent."""
    _, read = _followed(topic, steps, more)
    sql = dict(topic.decoding.columns)
    if not read or not topic.changes or topic.changes.op.name not in sql:
        return topic
    changes = is_one_of(topic, topic.changes.writes)
    faults = (
        Fault(
            "value",
            "value_not_sent",
            _WHY.format(each.name),
            when=f"{changes} AND {holds(_unsent(topic, each.type), sql[each.name])}",
        )
        for each in topic.columns
        if each.name in read
    )
    return replace(topic, decoding=replace(topic.decoding, faults=(*topic.decoding.faults, *faults)))


def _unsent(topic: Topic, type_: Type) -> str:
    return topic.changes.unsent(type_) if topic.changes else ""


def holds(marked: str, column: str) -> str:
    """The SQL over `?`, of a column."""
    return marked.replace("?", column)


def _followed(topic: Topic, steps: Sequence[Step], more: Iterable[str | None]) -> tuple[dict[str, Column], set[str]]:
    """The topic's columns that come through the steps, by what they are called behind them; and the names of those that are read."""
    columns = {column.name: column for column in topic.columns if _unsent(topic, column.type)}
    read: set[str] = set()
    for step in steps:
        read |= {columns[name].name for sql in _texts(step, columns) if sql for name in columns_read(sql, columns)}
        assigned = {name: columns.get(_only(sql, columns)) for name, sql in step.assign}
        assigned |= {step.each.into: None} if step.each else {}
        columns = {name: column for name, column in {**columns, **assigned}.items() if column}
        columns = {each.name: columns[each.name] for each in step.columns if each.name in columns}
    read_behind = {name for sql in more if sql for name in columns_read(sql, columns)}
    read_behind |= {name for step in steps if step.memory for name in step.memory.columns} & columns.keys()
    return columns, read | {columns[name].name for name in read_behind}


def _texts(step: Step, columns: Iterable[str]) -> Iterator[str | None]:
    yield from (sql for _, sql in step.assign if not _only(sql, columns))
    yield from (fault.when for fault in step.faults)
    yield from (step.keep, step.each.list if step.each else None)


def _only(sql: str, columns: Iterable[str]) -> str:
    """The column that the text is and nothing else."""
    return next((name for name in columns if sql == identifier(name)), "")
