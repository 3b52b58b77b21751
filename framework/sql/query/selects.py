"""One select, typed and written as SQL for Spark.

Its parts become selects inside each other: the rows of FROM and WHERE, their groups, the windows over these, and the columns. So each
expression reads plain columns only, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from framework.base.types import holds_map
from framework.sql.faults import ExpressionFault
from framework.sql.query import many_rows
from framework.sql.query.functions import WINDOWS
from framework.sql.query.grouped import grouped
from framework.sql.query.nodes import Aggregate, Over, Select, SelectItem, mapped, shape
from framework.sql.query.relations import Relation, RelationField, Scope, apart_by, by_table, resolved, windows_of
from framework.sql.query.rows import SelectRows
from framework.sql.quote import identifier
from framework.sql.suggested import code
from framework.sql.tree import Call, Column, Literal, Member, Node, children


@dataclass(frozen=True)
class Out:
    """A column of the result, with its name if it has one."""

    name: str | None
    value: Node
    text: str
    offset: int


def relation(select: Select, scope: Scope, faults: list[ExpressionFault], by_place: bool = False) -> Relation | None:
    """Returns the relation that a select gives; None, and faults, where it is wrong. With `by_place` its columns need no names, since
    another select has them."""
    fault_count = len(faults)
    scope = replace(
        scope, windows={group.name: group for group in select.groups if isinstance(group, Call) and group.name in WINDOWS}
    )
    items = list(_items(select, scope, faults))
    groups = [_group(node, select, scope, items, faults) for node in select.groups]
    where = select.where and resolved(select.where, scope, faults)
    having = select.having and resolved(_with_names(select.having, scope, select.items), scope, faults)
    if len(faults) > fault_count:
        return None
    if by_place:
        items = [replace(item, name=f"_sluice_c{index}") for index, item in enumerate(items)]
    rows = SelectRows(scope.sql, scope.columns, scope.apart, faults)
    if where is not None:
        rows.keep(where, "WHERE")
    values: Sequence[Node] = [item.value for item in items]
    group_values = (*values, *filter(None, [having]))
    if groups or any(isinstance(part, Aggregate) for value in group_values for part in _alone(value)):
        values, having = grouped(rows, groups, values, having)
    elif having is not None:
        faults.append(
            ExpressionFault(having.offset, "sql-clause", "HAVING keeps groups, and there is no GROUP BY", "write WHERE")
        )
    if len(faults) > fault_count:
        return None
    if having is not None:
        rows.keep(having, "HAVING")
    values = _windows(rows, values)
    if len(faults) > fault_count:
        return None
    fields = list(_columns(rows, items, values, scope))
    if select.distinct:
        faults += [
            ExpressionFault(select.offset, "sql-type", f"DISTINCT cannot compare `{name}`, which is {field.type}", "leave it out")
            for name, (_, field) in fields
            if holds_map(field.type)
        ]
    if len(faults) > fault_count:
        return None
    columns = ", ".join(f"{sql} AS {identifier(name)}" for name, (sql, _) in fields)
    sql = f"SELECT {'DISTINCT ' if select.distinct else ''}{columns} FROM ({rows.sql})"
    return Relation(sql, tuple(field for _, (_, field) in fields), rows.apart)


def _alone(node: Node) -> Iterator[Node]:
    """Yields the parts of an expression; of a function over a window only its arguments, its filter, its partition and its
    order."""
    if not isinstance(node, Over):
        yield node
    parts = (*children(node.of), *node.partition, *node.order) if isinstance(node, Over) else children(node)
    for part in parts:
        yield from _alone(part)


def _items(select: Select, scope: Scope, faults: list[ExpressionFault]) -> Iterator[Out]:
    own_names = {item.name.lower() for item in select.items if item.name}
    for item in select.items:
        if item.value is None:
            for column in scope.starred(item, faults):
                yield Out(column.field.name, Column(item.offset, column.flat), column.field.name, item.offset)
            continue
        if item.name and item.name.lower().startswith("_sluice"):
            message = f"`{item.name}` is a name that Sluice uses itself"
            faults.append(
                ExpressionFault(item.offset, "reserved-name", message, f"choose another name, such as `{item.name.lstrip('_')}`")
            )
        inner_scope = replace(scope, own_names=frozenset(own_names - {(item.name or "").lower()}))
        yield Out(item.name or _own_name(item, scope), resolved(item.value, inner_scope, faults), item.text, item.offset)


def _own_name(item: SelectItem, scope: Scope) -> str | None:
    """Returns the name of a column or a field, as it is declared; None for other values."""
    value = by_table(item.value, scope) if item.value else None
    if isinstance(value, Column):
        return next((column.field.name for column in scope.named(value.name)), value.name)
    if isinstance(value, Member):
        owner = value.of
        candidates = scope.columns_of(owner.name) if isinstance(owner, Column) else []
        name = value.name
        return next((column.field.name for column in candidates if column.field.name.lower() == name.lower()), name)
    return None


def _with_names(node: Node, scope: Scope, items: Sequence[SelectItem]) -> Node:
    """Returns a condition of HAVING in which the names of the select's columns are replaced by their values, where the tables have no
    such column."""
    if isinstance(node, Column) and not scope.named(node.name):
        matching_values = (item.value for item in items if item.value and item.name and item.name.lower() == node.name.lower())
        return next(matching_values, node)
    return mapped(node, lambda part: _with_names(part, scope, items))


def _group(node: Node, select: Select, scope: Scope, items: Sequence[Out], faults: list[ExpressionFault]) -> Node:
    """Returns a value of GROUP BY, which is written as an expression, or as the number or the name of a column of the select."""
    if isinstance(node, Literal) and node.kind == "number" and node.value.isdigit():
        if 1 <= int(node.value) <= len(items):
            return items[int(node.value) - 1].value
        message = f"there is no column {node.value}: the select has {len(items)}"
        faults.append(ExpressionFault(node.offset, "unknown-column", message, "count from 1, or name the column"))
        return node
    if isinstance(node, Column) and not scope.named(node.name):
        named_item = next((item for item in items if item.name and item.name.lower() == node.name.lower()), None)
        if named_item is not None:
            return named_item.value
    return resolved(node, scope, faults)


def _windows(rows: SelectRows, values: Sequence[Node]) -> list[Node]:
    """Adds each function over a window to the rows as a column, and returns the values, which name these columns."""
    names: dict[object, str] = {}
    new_columns: dict[str, tuple[str, RelationField]] = {}
    apart = rows.apart
    for window in (part for value in values for part in windows_of(value)):
        if shape(window) in names:
            continue
        name = names[shape(window)] = f"_sluice_w{len(names)}"
        result = rows.tried(many_rows.over, window, rows.checked)
        if result:
            new_columns[name] = (result[0], RelationField(name, result[1], rows.origins(rows.read(window))))
            apart = apart_by(apart, window.partition, rows.columns)
    if rows.faults:
        return list(values)
    if new_columns:
        rows.add(new_columns)
        rows.apart = apart

    def replaced(node: Node) -> Node:
        return Column(node.offset, names[shape(node)]) if isinstance(node, Over) else mapped(node, replaced)

    return list(map(replaced, values))


def _columns(
    rows: SelectRows, items: Sequence[Out], values: Sequence[Node], scope: Scope
) -> Iterator[tuple[str, tuple[str, RelationField]]]:
    """Yields each column's name, SQL and field."""
    names: set[str] = set()
    for item, value in zip(items, values, strict=True):
        if item.name is None:
            hint = f"write {code(f'{item.text} as name' if len(item.text) <= 60 else '… as name')}"
            rows.faults.append(ExpressionFault(item.offset, "sql-no-name", "this column has no name", hint))
            continue
        if item.name.lower() in names:
            hint = "give one of them another name: … as other_name; `* except (a)` leaves a column out"
            rows.faults.append(ExpressionFault(item.offset, "duplicate-column", f"there are two columns `{item.name}`", hint))
        names.add(item.name.lower())
        checked = rows.tried(rows.checked, value)
        if checked:
            yield item.name, (str(checked.sql), rows.field(item.name, checked, value))
