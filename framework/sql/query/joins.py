"""Tables that are joined in a FROM clause."""

from __future__ import annotations

from dataclasses import replace

from framework.base.spelling import listed
from framework.sql import coercion
from framework.sql.faults import Fault
from framework.sql.query.nodes import Join
from framework.sql.query.relations import Field, Named, Scope, resolved, side
from framework.sql.query.rows import Rows
from framework.sql.quote import identifier
from framework.sql.tree import Column, Node, Operation


def joined(join: Join, left: Scope, right: Scope, faults: list[Fault]) -> Scope | None:
    """Both sides; None and faults where they do not go together."""
    left, right = side(left) if len(left.tables) == 1 else left, side(right)
    for name in right.tables:
        if not name or left.has(name):
            message = f"there are two tables `{name}`" if name else "a select in a join needs a name"
            faults.append(Fault(join.offset, "sql-table", message, "give it a name of its own: … as other"))
            return None
    before = len(faults)
    names, tables = (*left.names, *right.names), (*left.tables, *right.tables)
    both = Scope("", names, apart=None, tables=tables, whole={**left.whole, **right.whole}, second=left.second)
    pairs = list(_pairs(join, left, right, faults))
    conditions: list[Node] = [_equal(join, *pair) for pair in pairs]
    if join.on is not None:
        conditions.append(resolved(join.on, both, faults))
    if len(faults) > before:
        return None
    rows = Rows("", both.columns, None, faults)
    checked = [rows.tried(rows.condition, node, "ON") for node in conditions]
    if pairs:
        by_on = "join by ON in place of USING: "
        faults[before:] = [replace(fault, hint=fault.hint.replace("write ", by_on, 1)) for fault in faults[before:]]
    if len(faults) > before:
        return None
    on = " AND ".join(str(each.sql) for each in checked if each)
    scope = _columns(join, left, both, pairs)
    sql = f"SELECT {scope.sql} FROM ({left.sql}) {join.kind.upper()} JOIN ({right.sql}){f' ON {on}' if on else ''}"
    return replace(scope, sql=sql)


def _columns(join: Join, left: Scope, both: Scope, pairs: list[tuple[Named, Named]]) -> Scope:
    """The columns of both sides, as SQL. USING joins two columns, of which one is found by name."""
    names = left.names if join.kind in ("left semi", "left anti") else both.names
    columns = [identifier(each.flat) for each in names]
    first: list[Named] = []
    second = set(left.second)
    for at, (one, other) in enumerate(pairs):
        chosen = other if join.kind == "right" else one
        if join.kind == "full":
            flat = f"_sluice_using{len(names)}_{at}"
            type_ = coercion.wider(one.field.type, other.field.type) or one.field.type
            columns.append(f"coalesce({identifier(one.flat)}, {identifier(other.flat)}) AS {identifier(flat)}")
            chosen = Named("", Field(one.field.name, type_, one.field.origins | other.field.origins), flat)
        first.append(chosen)
        second |= {one.flat, other.flat} - {chosen.flat}
    names = (*first, *(each for each in names if each not in first))
    return replace(both, sql=", ".join(columns), names=names, second=frozenset(second))


def _pairs(join: Join, left: Scope, right: Scope, faults: list[Fault]) -> list[tuple[Named, Named]]:
    """The columns that USING joins."""
    pairs = []
    for name in join.using:
        there = left.named(name), right.named(name)
        for scope, columns in zip((left, right), there, strict=True):
            if len(columns) != 1:
                what = f"several columns `{name}`" if columns else f"no column `{name}`"
                faults.append(
                    Fault(join.offset, "unknown-column", f"USING: {listed(scope.tables)} has {what}", "write ON a.x = b.y")
                )
        if all(len(columns) == 1 for columns in there):
            pairs.append((there[0][0], there[1][0]))
    return pairs


def _equal(join: Join, one: Named, other: Named) -> Node:
    return Operation(join.offset, "=", (Column(join.offset, one.flat), Column(join.offset, other.flat)))
