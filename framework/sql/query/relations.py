"""Rows with named columns: a table, a select, or several of them joined; and what the names in an expression stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from framework.base.spelling import did_you_mean, listed, the_names
from framework.base.types import Type
from framework.sql.expressions import units, unknown
from framework.sql.faults import Fault, refused
from framework.sql.query.nodes import Item, Over, bound, mapped
from framework.sql.quote import identifier
from framework.sql.tree import Column, Member, Node, children

LARGEST = 500_000
"""Characters of SQL: a select is written out wherever its name is used."""


@dataclass(frozen=True)
class Field:
    """A column. `origins` are the tables' columns that it is computed from; `same` is the one that it is."""

    name: str
    type: Type
    origins: frozenset[str]
    _: KW_ONLY
    same: str | None = None
    hidden: bool = False  # whether a star leaves it out


@dataclass(frozen=True)
class Relation:
    """SQL of rows. `apart` are columns of its one table: all rows with some values of theirs can be computed from the table's rows with
    these values alone. None where there are several tables."""

    sql: str
    fields: tuple[Field, ...]
    apart: frozenset[str] | None

    def __post_init__(self) -> None:
        if len(self.sql) > LARGEST:
            hint = "make a table of a part of it, by a pipeline of its own, and read that"
            raise refused(0, "sql-too-long", "the select is too large where all its parts are written out", hint)

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Named:
    """A column in a FROM clause: its table's name there, and its own name in SQL over the clause."""

    of: str
    field: Field
    flat: str


@dataclass(frozen=True)
class Scope:
    """A FROM clause. Of columns that are joined by name the `second` do not count by name alone. `whole` has tables by their whole
    names. Where there is no such column, `window` is one of the `windows` of time by which rows are grouped, as Spark calls it; what the
    select has itself (`own_names`) is none."""

    sql: str
    names: tuple[Named, ...]
    _: KW_ONLY
    apart: frozenset[str] | None
    tables: tuple[str, ...]
    whole: Mapping[str, str]
    second: frozenset[str] = frozenset()
    windows: Mapping[str, Node] = field(default_factory=dict)
    own_names: frozenset[str] = frozenset()

    @property
    def columns(self) -> dict[str, Field]:
        return {each.flat: each.field for each in self.names}

    def of(self, table: str) -> list[Named]:
        return [each for each in self.names if each.of.lower() == table.lower()]

    def has(self, table: str) -> bool:
        return any(each.lower() == table.lower() for each in self.tables)

    def named(self, name: str) -> list[Named]:
        return [each for each in self.names if each.field.name.lower() == name.lower() and each.flat not in self.second]

    def starred(self, item: Item, faults: list[Fault]) -> list[Named]:
        """The columns of `*` or `o.*`."""
        of = self.whole.get(item.of.lower(), item.of) if item.of else None
        if of is not None and not self.has(of):
            faults.append(self.no_table(of, item.offset))
            return []
        names = [each for each in (self.of(of) if of else self.names) if not each.field.hidden]
        if item.of is None:
            names = [each for each in names if each.flat not in self.second]
        gone = {name.lower() for name in item.left_out}
        there = {each.field.name.lower() for each in names}
        for name in item.left_out:
            if name.lower() not in there:
                hint = did_you_mean(name, [each.field.name for each in names], "leave it away")
                faults.append(Fault(item.offset, "unknown-column", f"`*` has no column `{name}`", hint))
        left = [each for each in names if each.field.name.lower() not in gone]
        if not left and not faults:
            faults.append(Fault(item.offset, "sql-star", "no column is left for `*`", "name the columns that there are"))
        return left

    def no_table(self, name: str, offset: int) -> Fault:
        hint = did_you_mean(name, self.tables, the_names("table", self.tables))
        return Fault(offset, "unknown-table", f"there is no table `{name}` in this FROM", hint)


def one(relation: Relation, name: str, whole: str) -> Scope:
    """A FROM clause of one table."""
    names = tuple(Named(name, field, field.name) for field in relation.fields)
    by_whole_name = {whole.lower(): name} if whole.rpartition(".")[2] == name else {}  # else it is called otherwise here
    return Scope(relation.sql, names, apart=relation.apart, tables=(name,), whole=by_whole_name)


def side(scope: Scope) -> Scope:
    """A FROM clause of one table as a side of a join, where each column has its table's name in front."""
    names = tuple(Named(each.of, each.field, f"{each.of}.{each.field.name}") for each in scope.names)
    columns = ", ".join(f"{identifier(old.flat)} AS {identifier(new.flat)}" for old, new in zip(scope.names, names, strict=True))
    return replace(scope, sql=f"SELECT {columns} FROM ({scope.sql})", names=names, apart=None, second=frozenset())


def resolved(node: Node, scope: Scope, faults: list[Fault], names: frozenset[str] = frozenset()) -> Node:
    """The expression, with each column by its name in SQL over the FROM clause. What is no column stays as it is."""
    node = by_table(node, scope)
    if isinstance(node, Member) and isinstance(node.of, Column) and node.of.name.lower() not in names and scope.has(node.of.name):
        there = [each for each in scope.of(node.of.name) if each.field.name.lower() == node.name.lower()]
        if there:
            return Column(node.offset, there[0].flat)
        columns = [each.field.name for each in scope.of(node.of.name)]
        if not columns:
            message = f"the join keeps no columns of `{node.of.name}`"
            faults.append(Fault(node.offset, "unknown-column", message, "write JOIN or LEFT JOIN, or put the condition into ON"))
            return node
        hint = did_you_mean(node.name, columns, f"columns there: {listed(columns)}")
        faults.append(Fault(node.offset, "unknown-column", f"`{node.of.name}` has no column `{node.name}`", hint))
        return Column(node.offset, scope.of(node.of.name)[0].flat)
    if isinstance(node, Column) and node.name.lower() not in names:
        candidates = scope.named(node.name)
        if not candidates and node.name.lower() in scope.windows:
            return resolved(scope.windows[node.name.lower()], replace(scope, windows={}), faults)
        if not candidates and node.name.lower() in scope.own_names:
            hint = "repeat its expression, or put the select that makes it in parentheses into FROM"
            faults.append(Fault(node.offset, "unknown-column", f"`{node.name}` is made by this select", hint))
        elif not candidates:
            faults += unknown(node, {each.flat.lower(): each.flat for each in scope.names if not each.field.hidden})
        if len(candidates) > 1:
            tables = " and ".join(f"`{each.of}`" for each in candidates)
            message = f"`{node.name}` is a column of {tables}"
            faults.append(Fault(node.offset, "sql-ambiguous", message, f"write `{candidates[0].of}.{candidates[0].field.name}`"))
        return Column(node.offset, candidates[0].flat) if candidates else node
    inner, words = bound(node, names), {id(each) for each in units(node)}
    return mapped(node, lambda part: part if id(part) in words else resolved(part, scope, faults, inner))


def by_table(node: Node, scope: Scope) -> Node:
    """`shop.orders.id` as `orders.id`."""
    match node:
        case Member(of=Member(of=Column(name=space) as first, name=table)):
            name = scope.whole.get(f"{space}.{table}".lower())
            return replace(node, of=Column(first.offset, name)) if name else node
    return node


def apart_by(apart: frozenset[str] | None, nodes: Iterable[Node], columns: Mapping[str, Field]) -> frozenset[str] | None:
    """The values by which rows still differ, if they are grouped by these."""
    if apart is None:
        return None
    same = (columns[node.name].same for node in nodes if isinstance(node, Column) and node.name in columns)
    return apart & {name for name in same if name}


def windows_of(node: Node) -> list[Over]:
    """The windows in an expression, which stand in no other."""
    if isinstance(node, Over):
        return [node]
    return [over for part in children(node) for over in windows_of(part)]
