"""An analyst's SQL expression, checked and typed before Spark runs, and rewritten so that it never throws for a row.

*Guarantee* For every row: `error` is true where Spark under ANSI would have thrown, and elsewhere `sql` gives what Spark would
have given.
*Limit* Only what the tables in `functions` and `operators` name; time zone UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from framework import types
from framework.model.column_sql import ColumnSql
from framework.spelling import did_you_mean, listed
from framework.sql import casts, dialects, functions, grammar, literals, operators
from framework.sql.faults import ExpressionError, Fault, refused
from framework.sql.pieces import Piece, column
from framework.sql.reserved import CHANGING
from framework.sql.tree import Call, Case, Cast, Column, In, Is, Item, Literal, Member, Node, Operation, walk
from framework.types import DATE, VOID, Struct, Type, is_integral

MOST_FAULTS = 20
"""The most unknown names that are reported for one expression."""

_UNIT = "a unit of time is a text, in front: date_trunc('month', at)"

__all__ = ["Checked", "ExpressionError", "Fault", "check"]


@dataclass(frozen=True)
class Checked:
    """`error` is SQL that is never null, or None where nothing can fail; both read the columns by their declared names."""

    sql: ColumnSql
    type: Type
    error: ColumnSql | None


def check(text: str, columns: Mapping[str, Type], more: bool = False) -> Checked:
    """The safe expression; or ExpressionError, with all unknown names or with the first pair of types that does not fit.

    If there are `more` columns than those given, any name can be one of them.
    """
    tree = grammar.parse(text)
    if more:
        columns = {**{node.name: VOID for node, _ in walk(tree) if isinstance(node, Column)}, **columns}
    return typed(tree, columns)


def typed(tree: Node, columns: Mapping[str, Type]) -> Checked:
    """Like `check`, for an expression that is already parsed."""
    declared = {name.lower(): name for name in columns}
    nodes = sorted((node for node, _ in walk(tree)), key=lambda node: node.offset)
    units = {id(node) for call in nodes for node in _units(call)}
    faults = list(islice((fault for node in nodes if id(node) not in units for fault in _unknown(node, declared)), MOST_FAULTS))
    if faults:
        raise ExpressionError(*faults)
    used = frozenset(declared[node.name.lower()] for node in nodes if isinstance(node, Column))
    if any(columns[name] == VOID for name in used):
        # The step that computes the column is wrong and already reported, so its uses report nothing.
        return Checked(ColumnSql("NULL", used), VOID, None)
    piece = _Typing(columns, declared).piece(tree)
    if piece.type == VOID:
        raise refused(piece.offset, "sql-type", "NULL alone has no type", "give it a type: cast(null as string)")
    return Checked(ColumnSql(piece.sql, used), piece.type, ColumnSql(piece.error, used) if piece.error else None)


def _units(node: Node) -> Iterator[Node]:
    """The words without quotes that other dialects put among the arguments of a function: `dateadd(day, 1, at)`."""
    if isinstance(node, Call) and node.name in dialects.WRITE:
        for argument in node.arguments:
            if isinstance(argument, Column) and argument.name.lower() in dialects.UNITS | types.NAMES.keys():
                yield argument


def _unknown(node: Node, declared: Mapping[str, str]) -> list[Fault]:
    if isinstance(node, Call) and node.name not in functions.NAMES:
        return list(functions.unknown(node.name, node.offset).faults)
    if not isinstance(node, Column) or node.name.lower() in declared:
        return []
    name = node.name
    if name.lower() in CHANGING or name.lower() in ("user", "current_user", "session_user"):
        why = f"{name} is not a column here, and as a function it gives another value each time"
        return [Fault(node.offset, "sql-not-deterministic", why, "use _kafka_timestamp or _event_time")]
    here = f"columns here: {listed(declared.values())}"
    otherwise = f"a text needs quotes: '{name}'; {here}" if name.isupper() else here
    hint = _UNIT if name.lower() in dialects.UNITS else did_you_mean(name, declared.values(), otherwise)
    return [Fault(node.offset, "unknown-column", f"there is no column `{name}`", hint)]


class _Typing:
    """Types a tree from its leaves, each node once: `x between …` holds x twice."""

    def __init__(self, columns: Mapping[str, Type], declared: Mapping[str, str]) -> None:
        self.columns = columns
        self.declared = declared
        self.pieces: dict[int, Piece] = {}

    def piece(self, node: Node) -> Piece:
        if id(node) not in self.pieces:
            self.pieces[id(node)] = self.typed(node)
        return self.pieces[id(node)]

    def typed(self, node: Node) -> Piece:
        at = node.offset
        match node:
            case Literal():
                return literals.literal(node)
            case Column(name=name):
                name = self.declared[name.lower()]
                return column(name, self.columns[name], at)
            case Member(of=of, name=name):
                return self.member(self.piece(of), name, at)
            case Item(of=of, at=index):
                return operators.item(self.piece(of), self.piece(index), at)
            case Cast(operand=operand, type=type, tries=tries):
                return casts.cast(self.piece(operand), type, tries, at)
            case Is(operand=operand, what=what):
                return operators.test(self.piece(operand), what, at)
            case In(operand=operand, options=options):
                return operators.membership(self.piece(operand), [self.piece(option) for option in options], at)
            case Case(branches=branches, otherwise=otherwise):
                pairs = [(self.piece(condition), self.piece(value)) for condition, value in branches]
                return operators.chosen(pairs, self.piece(otherwise) if otherwise else None, at)
            case Operation(operator=operator, operands=operands):
                return self.operation(operator, operands, at)
            case Call():
                return self.call(node)
        raise AssertionError(f"a node without a meaning: {node}")

    def member(self, piece: Piece, name: str, at: int) -> Piece:
        if isinstance(piece.type, Struct) and piece.type.field(name) is None:
            field_names = [field.name for field in piece.type.fields]
            raise refused(
                at,
                "unknown-column",
                f"there is no field {name} in the struct",
                did_you_mean(name, field_names, f"fields here: {listed(field_names)}"),
            )
        return operators.member(piece, name, at)

    def call(self, node: Call) -> Piece:
        if node.name in ("try_add", "try_subtract") and len(node.arguments) == 2 and _interval(node.arguments[1]):
            operator = "+" if node.name == "try_add" else "-"
            interval = node.arguments[1]
            assert isinstance(interval, Literal), "an interval is one"
            return operators.moved(operator, self.piece(node.arguments[0]), interval, node.offset, tries=True)
        return functions.called(node, [self.piece(argument) for argument in node.arguments])

    def operation(self, operator: str, operands: tuple[Node, ...], at: int) -> Piece:
        if operator in ("+", "-") and len(operands) == 2:
            return self.sum(operator, operands[0], operands[1], at)
        pieces = [self.piece(operand) for operand in operands]
        if operator in ("and", "or"):
            return operators.logic(operator, pieces, at)
        if operator == "not":
            return operators.negation(pieces[0], at)
        if len(pieces) == 1:
            return operators.signed(operator, pieces[0], at)
        left, right = pieces
        if operator in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
            return operators.comparison(operator, left, right, at)
        if operator in ("like", "ilike", "rlike"):
            return operators.matching(operator, left, right, at)
        if operator in ("&", "|", "^"):
            return operators.bits(operator, pieces, at)
        return operators.joined(left, right, at) if operator == "||" else operators.arithmetic(operator, left, right, at)

    def sum(self, operator: str, first: Node, second: Node, at: int) -> Piece:
        """`+` and `-`, which also move dates and timestamps."""
        if operator == "+" and _interval(first):
            first, second = second, first
        if isinstance(second, Literal) and _interval(second):
            return operators.moved(operator, self.piece(first), second, at)
        left, right = self.piece(first), self.piece(second)
        if left.type == DATE and is_integral(right.type):
            return operators.days(operator, left, right, at)
        return operators.arithmetic(operator, left, right, at)


def _interval(node: Node) -> bool:
    return isinstance(node, Literal) and node.kind == "interval"
