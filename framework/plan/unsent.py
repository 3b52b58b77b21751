"""Values that Debezium did not send, since they had not changed: a marker stands in their place.

A column that comes through all steps as it is takes the value that was there before. A step that looks at one cannot know it: then it
is a bad row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from framework.plan.lineage import names
from framework.plan.model import Column, Fault, Step, Topic
from framework.plan.rows import Rows, named
from framework.types import BINARY, STRING, Array, Type

_MARKER = "'__debezium_unavailable_value'"
_WHY = "the database did not send `{}`, which has not changed, and a step needs it: give the table REPLICA IDENTITY FULL"


def carried(topic: Topic, steps: Iterable[Step], rows: Rows) -> tuple[tuple[str, str], ...]:
    """Columns behind the steps in which the marker can be, and the marker."""
    found, _ = _followed(topic, steps)
    there = {column.name for column in rows.columns}
    return tuple((name, _marker(column.type)) for name, column in found.items() if name in there)


def refused(topic: Topic, steps: Iterable[Step]) -> Topic:
    """The topic, of which a message is a bad row where a step needs a value that was not sent."""
    _, read = _followed(topic, steps)
    if not read:
        return topic
    sql = dict(topic.decoding.columns)
    rows = f"coalesce({sql['_op']} = 'u', false)"
    faults = (
        Fault(
            "value",
            "value_not_sent",
            _WHY.format(each.name),
            f"{rows} AND coalesce({sql[each.name]} = {_marker(each.type)}, false)",
        )
        for each in topic.columns
        if each.name in read
    )
    return replace(topic, decoding=replace(topic.decoding, faults=(*topic.decoding.faults, *faults)))


def _followed(topic: Topic, steps: Iterable[Step]) -> tuple[dict[str, Column], set[str]]:
    """The topic's columns that come through the steps, by what they are called behind them; and the names of those that are read."""
    found = {column.name: column for column in topic.columns if _marker(column.type)}
    read: set[str] = set()
    for step in steps:
        read |= {found[name].name for sql in _texts(step) for name in names(sql) & found.keys()}
        made = {name: found.get(_only(sql)) for name, sql in step.assign}
        found = {name: column for name, column in {**found, **made}.items() if column}
        found = {each.name: found[each.name] for each in step.columns if each.name in found}
    return found, read


def _texts(step: Step) -> Iterator[str]:
    yield from (sql for _, sql in step.assign if not _only(sql))
    yield from (fault.when for fault in step.faults)
    yield step.keep or ""
    yield step.each.list if step.each else ""


def _only(sql: str) -> str:
    """The column that the text is and nothing else."""
    return next((name for name in names(sql) if sql == named(name)), "")


def _marker(type_: Type) -> str:
    """SQL of what stands for a value of the type; nothing where Debezium has no marker."""
    if type_ == BINARY:
        return f"CAST({_MARKER} AS BINARY)"
    if isinstance(type_, Array):
        inner = _marker(type_.element)
        return f"array({inner})" if inner else ""
    return _MARKER if type_ == STRING else ""
