"""Tables that are joined in a FROM clause."""

from __future__ import annotations

from dataclasses import replace

from framework.base.spelling import listed
from framework.sql import coercion
from framework.sql.faults import ExpressionFault
from framework.sql.query.nodes import Join
from framework.sql.query.relations import NamedField, RelationField, Scope, resolved, side
from framework.sql.query.rows import SelectRows
from framework.sql.quote import identifier
from framework.sql.tree import Column, Node, Operation


def joined(join: Join, left_side: Scope, right_side: Scope, faults: list[ExpressionFault]) -> Scope | None:
    """Returns the FROM clause of both sides; None, and faults, where they cannot be joined."""
    left_side, right_side = side(left_side) if len(left_side.tables) == 1 else left_side, side(right_side)
    for name in right_side.tables:
        if not name or left_side.has(name):
            message = f"there are two tables `{name}`" if name else "a select in a join needs a name"
            faults.append(ExpressionFault(join.offset, "sql-table", message, "give it a name of its own: … as other"))
            return None
    fault_count = len(faults)
    names, tables = (*left_side.names, *right_side.names), (*left_side.tables, *right_side.tables)
    joined_scope = Scope(
        "", names, apart=None, tables=tables, whole={**left_side.whole, **right_side.whole}, second=left_side.second
    )
    pairs = list(_pairs(join, left_side, right_side, faults))
    conditions: list[Node] = [_equal(join, *pair) for pair in pairs]
    if join.on is not None:
        conditions.append(resolved(join.on, joined_scope, faults))
    if len(faults) > fault_count:
        return None
    rows = SelectRows("", joined_scope.columns, None, faults)
    checked_conditions = [rows.tried(rows.condition, node, "ON") for node in conditions]
    if pairs:
        by_on = "join by ON in place of USING: "
        faults[fault_count:] = [replace(fault, hint=fault.hint.replace("write ", by_on, 1)) for fault in faults[fault_count:]]
    if len(faults) > fault_count:
        return None
    on_sql = " AND ".join(str(condition.sql) for condition in checked_conditions if condition)
    scope = _columns(join, left_side, joined_scope, pairs)
    sql = f"SELECT {scope.sql} FROM ({left_side.sql}) {join.kind.upper()} JOIN ({right_side.sql}){f' ON {on_sql}' if on_sql else ''}"
    return replace(scope, sql=sql)


def _columns(join: Join, left_side: Scope, joined_scope: Scope, pairs: list[tuple[NamedField, NamedField]]) -> Scope:
    """Returns the FROM clause with SQL of the columns of both sides. Of two columns that USING joins, one is found by its name."""
    names = left_side.names if join.kind in ("left semi", "left anti") else joined_scope.names
    columns = [identifier(column.flat) for column in names]
    using_columns: list[NamedField] = []
    second_names = set(left_side.second)
    for index, (left_column, right_column) in enumerate(pairs):
        chosen = right_column if join.kind == "right" else left_column
        if join.kind == "full":
            flat = f"_sluice_using{len(names)}_{index}"
            type_ = coercion.wider(left_column.field.type, right_column.field.type) or left_column.field.type
            columns.append(f"coalesce({identifier(left_column.flat)}, {identifier(right_column.flat)}) AS {identifier(flat)}")
            chosen = NamedField(
                "", RelationField(left_column.field.name, type_, left_column.field.origins | right_column.field.origins), flat
            )
        using_columns.append(chosen)
        second_names |= {left_column.flat, right_column.flat} - {chosen.flat}
    names = (*using_columns, *(column for column in names if column not in using_columns))
    return replace(joined_scope, sql=", ".join(columns), names=names, second=frozenset(second_names))


def _pairs(join: Join, left_side: Scope, right_side: Scope, faults: list[ExpressionFault]) -> list[tuple[NamedField, NamedField]]:
    """Returns the pairs of columns that USING joins."""
    pairs = []
    for name in join.using:
        candidates = left_side.named(name), right_side.named(name)
        for scope, columns in zip((left_side, right_side), candidates, strict=True):
            if len(columns) != 1:
                problem = f"several columns `{name}`" if columns else f"no column `{name}`"
                faults.append(
                    ExpressionFault(
                        join.offset, "unknown-column", f"USING: {listed(scope.tables)} has {problem}", "write ON a.x = b.y"
                    )
                )
        if all(len(columns) == 1 for columns in candidates):
            pairs.append((candidates[0][0], candidates[1][0]))
    return pairs


def _equal(join: Join, left_column: NamedField, right_column: NamedField) -> Node:
    return Operation(join.offset, "=", (Column(join.offset, left_column.flat), Column(join.offset, right_column.flat)))
