"""GROUP BY: turns rows into groups, and expressions over rows into expressions over the groups' values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from framework.base.types import TIMESTAMP, TIMESTAMP_NTZ, Field as Part, Struct, holds_map
from framework.sql import grammar, intervals
from framework.sql.faults import ExpressionError, ExpressionFault, refused
from framework.sql.query import many_rows
from framework.sql.query.functions import WINDOWS
from framework.sql.query.nodes import Aggregate, Order, Over, bound, mapped, shape
from framework.sql.query.relations import RelationField, apart_by
from framework.sql.query.rows import SelectRows
from framework.sql.quote import identifier, literal
from framework.sql.tree import Call, Column, Literal, Node, walk


def grouped(
    rows: SelectRows, groups: Sequence[Node], values: Sequence[Node], having: Node | None
) -> tuple[Sequence[Node], Node | None]:
    """Makes groups of the rows, and returns the expressions over these groups."""
    keys: dict[object, str] = {}
    plain_columns: dict[str, tuple[str, RelationField]] = {}
    windows: dict[str, tuple[str, RelationField]] = {}
    if len(by_time := [group for group in groups if _is_window(group)]) > 1:
        rows.faults.append(
            ExpressionFault(
                by_time[1].offset, "sql-window", "rows are grouped by one window of time", "group again in a select around it"
            )
        )
    for group in groups:
        name = keys.setdefault(shape(group), f"_sluice_g{len(keys)}")
        key = rows.tried(_key, rows, group, name)
        if key:
            (windows if _is_window(group) else plain_columns)[name] = key
    rewriter = _Over(rows, keys)
    values, having = [rewriter.groups(value) for value in values], having and rewriter.groups(having)
    totals: dict[str, tuple[str, RelationField]] = {}
    for name, node in rewriter.aggregates.items():
        total = rows.tried(many_rows.aggregate, node, rows.checked)
        if total:
            totals[name] = (total[0], RelationField(name, total[1], rows.origins(rows.read(node))))
    rows.apart = apart_by(rows.apart, groups, rows.columns)
    if plain_columns:
        rows.add(plain_columns)
    group_sql = [*map(identifier, plain_columns), *(sql for sql, _ in windows.values())]
    columns = {name: (identifier(name), column) for name, (_, column) in plain_columns.items()} | windows | totals
    items = ", ".join(f"{sql} AS {identifier(name)}" for name, (sql, _) in columns.items())
    clause = f" GROUP BY {', '.join(group_sql)}" if group_sql else ""
    rows.sql = f"SELECT {items} FROM ({rows.sql}){clause}"
    rows.columns = {name: column for name, (_, column) in columns.items()}
    return values, having


def _is_window(node: Node) -> bool:
    return isinstance(node, Call) and node.name in WINDOWS


def _key(rows: SelectRows, node: Node, name: str) -> tuple[str, RelationField]:
    """Returns SQL of a value by which rows are grouped, and its field."""
    if isinstance(node, Call) and node.name in WINDOWS:
        return _window(rows, node, name)
    checked = rows.checked(node)
    if holds_map(checked.type):
        raise refused(node.offset, "sql-type", f"rows cannot be grouped by {checked.type}", "take a part of it, such as m['a']")
    return str(checked.sql), rows.field(name, checked, node)


def _window(rows: SelectRows, node: Call, name: str) -> tuple[str, RelationField]:
    maximum = 2 if node.name == "session_window" else 3
    example = f"{node.name}(at, interval 30 minutes)"
    if not 2 <= len(node.arguments) <= maximum:
        raise refused(node.offset, "sql-type", f"{node.name} takes a time and its length", f"write {example}")
    time = rows.checked(node.arguments[0])
    if time.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise refused(node.offset, "sql-type", f"{node.name} takes a timestamp, not {time.type}", f"write {example}")
    lengths = []
    for argument in node.arguments[1:]:
        seconds = _seconds(argument)
        if not seconds:
            raise refused(
                argument.offset, "sql-type", "this is no length of time, from microseconds to weeks", f"write {example}"
            )
        lengths.append(round(seconds * 1_000_000))
    if len(lengths) == 2 and lengths[1] > lengths[0]:
        message = "a window cannot begin more rarely than it is long: rows between two would be in none"
        raise refused(node.arguments[2].offset, "sql-type", message, f"write {node.name}(at, '1 hour', '30 minutes')")
    struct = Struct((Part("start", time.type), Part("end", time.type)))
    arguments = ", ".join((str(time.sql), *(f"'{length} microseconds'" for length in lengths)))
    return f"{node.name}({arguments})", RelationField(name, struct, rows.origins(time.sql.reads))


def _seconds(node: Node) -> float:
    """Returns the seconds of `interval 2 hours`, or of `'2 hours'`; 0 for anything else."""
    if isinstance(node, Literal) and node.kind == "string":
        try:
            node = grammar.parse(f"interval {literal(node.value)}")
        except ExpressionError:
            return 0
    is_length = isinstance(node, Literal) and node.kind == "time" and "-" not in node.value
    return intervals.seconds(node.value) if isinstance(node, Literal) and is_length else 0


def _names_one_of(node: Node, names: frozenset[str]) -> bool:
    """Whether an expression names one of `names`, the parameters of lambdas around it."""
    return bool(names) and any(isinstance(part, Column) and part.name.lower() in names for part, _ in walk(node))


@dataclass
class _Over:
    """Turns expressions over rows into expressions over groups."""

    rows: SelectRows
    keys: dict[object, str]
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    _names: dict[object, str] = field(default_factory=dict)

    def groups(self, node: Node, names: frozenset[str] = frozenset()) -> Node:
        if shape(node) in self.keys and not _names_one_of(node, names):
            return Column(node.offset, self.keys[shape(node)])
        if isinstance(node, Aggregate):
            name = self._names.setdefault(shape(node), f"_sluice_a{len(self._names)}")
            self.aggregates.setdefault(name, node)
            return Column(node.offset, name)
        if isinstance(node, Over):
            if isinstance(node.of, Aggregate) and node.of.where is not None:
                node = replace(node, of=replace(node.of, where=self.groups(node.of.where)))
            order = tuple(Order(order.offset, self.groups(order.value), order.words) for order in node.order)
            partition = tuple(map(self.groups, node.partition))
            function = replace(node.of, arguments=tuple(map(self.groups, node.of.arguments)))
            return replace(node, of=function, partition=partition, order=order)
        if isinstance(node, Column) and node.name.lower() not in names and node.name in self.rows.columns:
            message = f"`{node.name}` is neither in GROUP BY nor in an aggregate"
            hint = f"group by it, or say which of its values: max({node.name}), min_by({node.name}, at)"
            self.rows.faults.append(ExpressionFault(node.offset, "sql-not-grouped", message, hint))
        inner = bound(node, names)
        return mapped(node, lambda part: self.groups(part, inner))
