"""Rows with named columns: a table, a select, or several of them joined; and the columns that names in an expression stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from framework.base.spelling import did_you_mean, listed, the_names
from framework.base.types import Type
from framework.sql.expressions import units, unknown
from framework.sql.faults import ExpressionFault, refused
from framework.sql.query.nodes import Over, SelectItem, bound, mapped
from framework.sql.quote import identifier
from framework.sql.tree import Column, Member, Node, children

LARGEST = 500_000
"""Characters of SQL: a select is written out wherever its name is used."""


@dataclass(frozen=True)
class RelationField:
    """A column. `origins` are the tables' columns from which it is computed; `same` is the table's column that it copies, if it does."""

    name: str
    type: Type
    origins: frozenset[str]
    _: KW_ONLY
    same: str | None = None
    hidden: bool = False  # whether a star leaves it out


@dataclass(frozen=True)
class Relation:
    """SQL of rows. `apart` are columns of its one table: the rows with some values of these can be computed from the table's rows with
    the same values alone. It is None where there are several tables."""

    sql: str
    fields: tuple[RelationField, ...]
    apart: frozenset[str] | None

    def __post_init__(self) -> None:
        if len(self.sql) > LARGEST:
            hint = "make a table of a part of it, by a pipeline of its own, and read that"
            raise refused(0, "sql-too-long", "the select is too large where all its parts are written out", hint)

    def field(self, name: str) -> RelationField | None:
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class NamedField:
    """A column in a FROM clause: its table's name there, and its own name in SQL over the clause."""

    table: str
    field: RelationField
    flat: str


@dataclass(frozen=True)
class Scope:
    """A FROM clause. `second` are the columns, of those joined by name, that are not found by name alone. `whole` has tables by their
    whole names. A name that is no column can be one of the `windows` of time by which rows are grouped, but not one of `own_names`, the
    names that the select gives itself."""

    sql: str
    names: tuple[NamedField, ...]
    _: KW_ONLY
    apart: frozenset[str] | None
    tables: tuple[str, ...]
    whole: Mapping[str, str]
    second: frozenset[str] = frozenset()
    windows: Mapping[str, Node] = field(default_factory=dict)
    own_names: frozenset[str] = frozenset()

    @property
    def columns(self) -> dict[str, RelationField]:
        return {column.flat: column.field for column in self.names}

    def columns_of(self, table: str) -> list[NamedField]:
        return [column for column in self.names if column.table.lower() == table.lower()]

    def has(self, table: str) -> bool:
        return any(name.lower() == table.lower() for name in self.tables)

    def named(self, name: str) -> list[NamedField]:
        return [column for column in self.names if column.field.name.lower() == name.lower() and column.flat not in self.second]

    def starred(self, item: SelectItem, faults: list[ExpressionFault]) -> list[NamedField]:
        """Returns the columns of `*` or `o.*`."""
        table = self.whole.get(item.of.lower(), item.of) if item.of else None
        if table is not None and not self.has(table):
            faults.append(self.no_table(table, item.offset))
            return []
        columns = [column for column in (self.columns_of(table) if table else self.names) if not column.field.hidden]
        if item.of is None:
            columns = [column for column in columns if column.flat not in self.second]
        excluded_names = {name.lower() for name in item.left_out}
        present_names = {column.field.name.lower() for column in columns}
        for name in item.left_out:
            if name.lower() not in present_names:
                hint = did_you_mean(name, [column.field.name for column in columns], "leave it away")
                faults.append(ExpressionFault(item.offset, "unknown-column", f"`*` has no column `{name}`", hint))
        remaining_columns = [column for column in columns if column.field.name.lower() not in excluded_names]
        if not remaining_columns and not faults:
            faults.append(
                ExpressionFault(item.offset, "sql-star", "no column is left for `*`", "name the columns that there are")
            )
        return remaining_columns

    def no_table(self, name: str, offset: int) -> ExpressionFault:
        hint = did_you_mean(name, self.tables, the_names("table", self.tables))
        return ExpressionFault(offset, "unknown-table", f"there is no table `{name}` in this FROM", hint)


def one(relation: Relation, name: str, whole_name: str) -> Scope:
    """Returns a FROM clause of one table."""
    names = tuple(NamedField(name, field, field.name) for field in relation.fields)
    by_whole_name = (
        {whole_name.lower(): name} if whole_name.rpartition(".")[2] == name else {}
    )  # else the select gives the table another name
    return Scope(relation.sql, names, apart=relation.apart, tables=(name,), whole=by_whole_name)


def side(scope: Scope) -> Scope:
    """Returns a FROM clause of one table as a side of a join, where each column has its table's name in front."""
    names = tuple(NamedField(column.table, column.field, f"{column.table}.{column.field.name}") for column in scope.names)
    columns = ", ".join(f"{identifier(old.flat)} AS {identifier(new.flat)}" for old, new in zip(scope.names, names, strict=True))
    return replace(scope, sql=f"SELECT {columns} FROM ({scope.sql})", names=names, apart=None, second=frozenset())


def resolved(node: Node, scope: Scope, faults: list[ExpressionFault], names: frozenset[str] = frozenset()) -> Node:
    """Returns the expression, with each column by its name in SQL over the FROM clause. Other nodes stay unchanged."""
    node = by_table(node, scope)
    if isinstance(node, Member) and isinstance(node.of, Column) and node.of.name.lower() not in names and scope.has(node.of.name):
        matches = [column for column in scope.columns_of(node.of.name) if column.field.name.lower() == node.name.lower()]
        if matches:
            return Column(node.offset, matches[0].flat)
        columns = [column.field.name for column in scope.columns_of(node.of.name)]
        if not columns:
            message = f"the join keeps no columns of `{node.of.name}`"
            faults.append(
                ExpressionFault(node.offset, "unknown-column", message, "write JOIN or LEFT JOIN, or put the condition into ON")
            )
            return node
        hint = did_you_mean(node.name, columns, f"columns there: {listed(columns)}")
        faults.append(ExpressionFault(node.offset, "unknown-column", f"`{node.of.name}` has no column `{node.name}`", hint))
        return Column(node.offset, scope.columns_of(node.of.name)[0].flat)
    if isinstance(node, Column) and node.name.lower() not in names:
        candidates = scope.named(node.name)
        if not candidates and node.name.lower() in scope.windows:
            return resolved(scope.windows[node.name.lower()], replace(scope, windows={}), faults)
        if not candidates and node.name.lower() in scope.own_names:
            hint = "repeat its expression, or put the select that makes it in parentheses into FROM"
            faults.append(ExpressionFault(node.offset, "unknown-column", f"`{node.name}` is made by this select", hint))
        elif not candidates:
            faults += unknown(node, {column.flat.lower(): column.flat for column in scope.names if not column.field.hidden})
        if len(candidates) > 1:
            tables = " and ".join(f"`{column.table}`" for column in candidates)
            message = f"`{node.name}` is a column of {tables}"
            faults.append(
                ExpressionFault(
                    node.offset, "sql-ambiguous", message, f"write `{candidates[0].table}.{candidates[0].field.name}`"
                )
            )
        return Column(node.offset, candidates[0].flat) if candidates else node
    inner_names, unit_ids = bound(node, names), {id(unit) for unit in units(node)}
    return mapped(node, lambda part: part if id(part) in unit_ids else resolved(part, scope, faults, inner_names))


def by_table(node: Node, scope: Scope) -> Node:
    """Returns `shop.orders.id` as `orders.id`, and other nodes unchanged."""
    match node:
        case Member(of=Member(of=Column(name=space) as owner, name=table)):
            name = scope.whole.get(f"{space}.{table}".lower())
            return replace(node, of=Column(owner.offset, name)) if name else node
    return node


def apart_by(apart: frozenset[str] | None, nodes: Iterable[Node], columns: Mapping[str, RelationField]) -> frozenset[str] | None:
    """Returns those columns of `apart` that remain where rows are grouped by `nodes`."""
    if apart is None:
        return None
    same_names = (columns[node.name].same for node in nodes if isinstance(node, Column) and node.name in columns)
    return apart & {name for name in same_names if name}


def windows_of(node: Node) -> list[Over]:
    """Returns the windows in an expression, without those inside other windows."""
    if isinstance(node, Over):
        return [node]
    return [over for part in children(node) for over in windows_of(part)]
