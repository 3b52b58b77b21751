"""One select, typed and written as SQL for Spark.

Its parts become selects inside each other: the rows of FROM and WHERE, their groups, the windows over these, and the columns. So each
expression is one over plain columns, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from framework.base.types import holds_map
from framework.sql.faults import Fault
from framework.sql.query import many_rows
from framework.sql.query.functions import WINDOWS
from framework.sql.query.grouped import grouped
from framework.sql.query.nodes import Aggregate, Item, Over, Select, mapped, shape
from framework.sql.query.relations import Field, Relation, Scope, apart_by, by_table, resolved, windows_of
from framework.sql.query.rows import Rows
from framework.sql.quote import identifier
from framework.sql.suggested import code
from framework.sql.tree import Call, Column, Literal, Member, Node, children


@dataclass(frozen=True)
class Out:
    """A column to come, its name if it has one."""

    name: str | None
    value: Node
    text: str
    offset: int


def relation(select: Select, scope: Scope, faults: list[Fault], by_place: bool = False) -> Relation | None:
    """The relation that a select gives; None and faults where it is wrong. With `by_place` its columns need no names, since another
    select has them."""
    before = len(faults)
    scope = replace(scope, windows={each.name: each for each in select.groups if isinstance(each, Call) and each.name in WINDOWS})
    items = list(_items(select, scope, faults))
    groups = [_group(node, select, scope, items, faults) for node in select.groups]
    where = select.where and resolved(select.where, scope, faults)
    having = select.having and resolved(_with_names(select.having, scope, select.items), scope, faults)
    if len(faults) > before:
        return None
    if by_place:
        items = [replace(item, name=f"_sluice_c{at}") for at, item in enumerate(items)]
    rows = Rows(scope.sql, scope.columns, scope.apart, faults)
    if where is not None:
        rows.keep(where, "WHERE")
    values: Sequence[Node] = [item.value for item in items]
    of_groups = (*values, *filter(None, [having]))
    if groups or any(isinstance(part, Aggregate) for value in of_groups for part in _alone(value)):
        values, having = grouped(rows, groups, values, having)
    elif having is not None:
        faults.append(Fault(having.offset, "sql-clause", "HAVING keeps groups, and there is no GROUP BY", "write WHERE"))
    if len(faults) > before:
        return None
    if having is not None:
        rows.keep(having, "HAVING")
    values = _windows(rows, values)
    if len(faults) > before:
        return None
    fields = list(_columns(rows, items, values, scope))
    if select.distinct:
        faults += [
            Fault(select.offset, "sql-type", f"DISTINCT cannot compare `{name}`, which is {each.type}", "leave it out")
            for name, (_, each) in fields
            if holds_map(each.type)
        ]
    if len(faults) > before:
        return None
    columns = ", ".join(f"{sql} AS {identifier(name)}" for name, (sql, _) in fields)
    sql = f"SELECT {'DISTINCT ' if select.distinct else ''}{columns} FROM ({rows.sql})"
    return Relation(sql, tuple(each for _, (_, each) in fields), rows.apart)


def _alone(node: Node) -> Iterator[Node]:
    """The parts of an expression; of a function over a window only what it is given."""
    if not isinstance(node, Over):
        yield node
    parts = (*children(node.of), *node.partition, *node.order) if isinstance(node, Over) else children(node)
    for part in parts:
        yield from _alone(part)


def _items(select: Select, scope: Scope, faults: list[Fault]) -> Iterator[Out]:
    own = {item.name.lower() for item in select.items if item.name}
    for item in select.items:
        if item.value is None:
            for named in scope.starred(item, faults):
                yield Out(named.field.name, Column(item.offset, named.flat), named.field.name, item.offset)
            continue
        if item.name and item.name.lower().startswith("_sluice"):
            message = f"`{item.name}` is a name that Sluice uses itself"
            faults.append(Fault(item.offset, "reserved-name", message, f"choose another name, such as `{item.name.lstrip('_')}`"))
        inside = replace(scope, own_names=frozenset(own - {(item.name or "").lower()}))
        yield Out(item.name or _own_name(item, scope), resolved(item.value, inside, faults), item.text, item.offset)


def _own_name(item: Item, scope: Scope) -> str | None:
    """The name of a column or a field, as it is declared."""
    value = by_table(item.value, scope) if item.value else None
    if isinstance(value, Column):
        return next((each.field.name for each in scope.named(value.name)), value.name)
    if isinstance(value, Member):
        of = value.of
        there = scope.of(of.name) if isinstance(of, Column) else []
        name = value.name
        return next((each.field.name for each in there if each.field.name.lower() == name.lower()), name)
    return None


def _with_names(node: Node, scope: Scope, items: Sequence[Item]) -> Node:
    """A condition of HAVING, in which names of the select's columns stand for them where the tables have no such column."""
    if isinstance(node, Column) and not scope.named(node.name):
        named = (item.value for item in items if item.value and item.name and item.name.lower() == node.name.lower())
        return next(named, node)
    return mapped(node, lambda part: _with_names(part, scope, items))


def _group(node: Node, select: Select, scope: Scope, items: Sequence[Out], faults: list[Fault]) -> Node:
    """A value of GROUP BY: an expression, or the number or the name of a column of the select."""
    if isinstance(node, Literal) and node.kind == "number" and node.value.isdigit():
        if 1 <= int(node.value) <= len(items):
            return items[int(node.value) - 1].value
        message = f"there is no column {node.value}: the select has {len(items)}"
        faults.append(Fault(node.offset, "unknown-column", message, "count from 1, or name the column"))
        return node
    if isinstance(node, Column) and not scope.named(node.name):
        named = next((item for item in items if item.name and item.name.lower() == node.name.lower()), None)
        if named is not None:
            return named.value
    return resolved(node, scope, faults)


def _windows(rows: Rows, values: Sequence[Node]) -> list[Node]:
    """The values, in which each function over a window is a column of the rows."""
    there: dict[object, str] = {}
    added: dict[str, tuple[str, Field]] = {}
    apart = rows.apart
    for over in (each for value in values for each in windows_of(value)):
        if shape(over) in there:
            continue
        name = there[shape(over)] = f"_sluice_w{len(there)}"
        windowed = rows.tried(many_rows.over, over, rows.checked)
        if windowed:
            added[name] = (windowed[0], Field(name, windowed[1], rows.origins(rows.read(over))))
            apart = apart_by(apart, over.partition, rows.columns)
    if rows.faults:
        return list(values)
    if added:
        rows.add(added)
        rows.apart = apart

    def replaced(node: Node) -> Node:
        return Column(node.offset, there[shape(node)]) if isinstance(node, Over) else mapped(node, replaced)

    return list(map(replaced, values))


def _columns(rows: Rows, items: Sequence[Out], values: Sequence[Node], scope: Scope) -> Iterator[tuple[str, tuple[str, Field]]]:
    """Each column's name, SQL and field."""
    names: set[str] = set()
    for item, value in zip(items, values, strict=True):
        if item.name is None:
            hint = f"write {code(f'{item.text} as name' if len(item.text) <= 60 else '… as name')}"
            rows.faults.append(Fault(item.offset, "sql-no-name", "this column has no name", hint))
            continue
        if item.name.lower() in names:
            hint = "give one of them another name: … as other_name; `* except (a)` leaves a column out"
            rows.faults.append(Fault(item.offset, "duplicate-column", f"there are two columns `{item.name}`", hint))
        names.add(item.name.lower())
        checked = rows.tried(rows.checked, value)
        if checked:
            yield item.name, (str(checked.sql), rows.field(item.name, checked, value))
