"""An analyst's SQL expression, checked and typed before Spark runs.

*Guarantee* Spark gives the same value for the same row, of the type given here. For a row for which Spark throws, `guarded` is null.
*Limit* The functions of `functions`; time zone UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from framework.base import types
from framework.base.spelling import did_you_mean, listed
from framework.base.types import INTERVALS, VOID, Array, Struct, Type
from framework.plan.column_sql import ColumnSql
from framework.sql import casts, comparisons, dialects, functions, grammar, literals, operators
from framework.sql.attempt import attempt
from framework.sql.faults import ExpressionError, ExpressionFault, refused
from framework.sql.pieces import Piece, column
from framework.sql.quote import identifier
from framework.sql.reserved import CHANGING
from framework.sql.tree import Call, Case, Cast, Column, In, Is, Item, Lambda, Literal, Member, Node, Operation, walk

MOST_FAULTS = 20
"""The most unknown names that are reported for one expression."""

_PART = (
    "write `datediff(b, a)` for the days from a to b, `timestampdiff(second, a, b)` for the seconds; "
    "an interval is added to a time: `a + interval 1 day`"
)
_NO_COLUMN: Mapping[Type, tuple[str, str]] = {
    **{type: (f"an {type}", _PART) for type in INTERVALS.values()},
    types.VARIANT: ("a variant", "take a part of it: `variant_get(parse_json(x), '$.a', 'int')`"),
}
"""Types that only a part of an expression can have, and what to write for a column."""
_UNIT = "a unit of time is a text, in front: `date_trunc('month', at)`"

__all__ = ["Checked", "ExpressionError", "ExpressionFault", "attempt", "check", "guarded"]


@dataclass(frozen=True)
class Checked:
    """SQL over columns by their declared names. `fails`: it can throw for a row. `error` is SQL of the reason, null for a row
    for which nothing was thrown; only `guarded` sets it."""

    sql: ColumnSql
    type: Type
    fails: bool = False
    error: ColumnSql | None = None


def guarded(checked: Checked, quiet: bool = False) -> Checked:
    """Returns the expression as an attempt, if it can fail."""
    if not checked.fails:
        return checked
    attempt_sql = attempt(checked.sql, quiet)
    value, error = (ColumnSql(f"{attempt_sql}.{part}", attempt_sql.reads) for part in ("value", "error"))
    return Checked(value, checked.type, error=error)


def check(text: str, columns: Mapping[str, Type], has_more: bool = False) -> Checked:
    """Returns the expression, checked, or raises ExpressionError, with all unknown names or the first pair of types that do not fit.

    With `has_more` there are more columns than `columns`, so any name can be one of them.
    """
    return _checked(text, tuple(columns.items()), has_more)


@lru_cache(maxsize=4096)  # pipelines of one topic, and those like each other, have the same expressions
def _checked(text: str, columns: tuple[tuple[str, Type], ...], has_more: bool) -> Checked:
    tree = grammar.parse(text)
    other_columns = {node.name: VOID for node, _ in walk(tree) if isinstance(node, Column)} if has_more else {}
    return typed(tree, {**other_columns, **dict(columns)})


def typed(tree: Node, columns: Mapping[str, Type]) -> Checked:
    """Returns what `check` does, for an expression that is already parsed."""
    declared = {name.lower(): name for name in columns}
    nodes = sorted((node for node, _ in walk(tree)), key=lambda node: node.offset)
    ignored_ids = {id(node) for call in nodes for node in (*units(call), *_own_variables(call))}
    faults = list(
        islice((fault for node in nodes if id(node) not in ignored_ids for fault in unknown(node, declared)), MOST_FAULTS)
    )
    if faults:
        raise ExpressionError(*faults)
    used_names = frozenset(
        declared[node.name.lower()] for node in nodes if isinstance(node, Column) and id(node) not in ignored_ids
    )
    if any(columns[name] == VOID for name in used_names):
        # The step that computes the column is wrong and already reported, so its uses report nothing.
        return Checked(ColumnSql("NULL", used_names), VOID)
    piece = _Typing(columns, declared).piece(tree)
    if piece.type == VOID:
        raise _untyped(tree)
    for part in types.parts(piece.type):
        if part in _NO_COLUMN:
            raise refused(piece.offset, "sql-type", f"{_NO_COLUMN[part][0]} cannot be a column", _NO_COLUMN[part][1])
    return Checked(ColumnSql(piece.sql, used_names), piece.type, piece.fails)


def _untyped(tree: Node) -> ExpressionError:
    if isinstance(tree, Literal):
        return refused(tree.offset, "sql-type", "NULL alone has no type", "give it a type: `cast(null as string)`")
    hint = "write when it is so: `if(price < 0, raise_error('no price'), price)`"
    return refused(tree.offset, "sql-type", "it is NULL or an error for every row, and so has no type", hint)


def _own_variables(node: Node) -> Iterator[Node]:
    """Yields the places in the body of a lambda that name its parameters."""
    if isinstance(node, Lambda):
        parameters = {name.lower() for name in node.parameters}
        for part, _ in walk(node.body):
            if isinstance(part, Column) and part.name.lower() in parameters:
                yield part


def units(node: Node) -> Iterator[Node]:
    """Yields the words without quotes that other dialects put among the arguments of a function: `dateadd(day, 1, at)`."""
    if isinstance(node, Call) and node.name in dialects.WRITE:
        for argument in node.arguments:
            if isinstance(argument, Column) and argument.name.lower() in dialects.UNITS | types.NAMES.keys():
                yield argument


def unknown(node: Node, declared: Mapping[str, str]) -> list[ExpressionFault]:
    """Returns the fault of an unknown name or function. `declared` has the known names by their lower case."""
    if isinstance(node, Call) and node.name not in functions.names():
        return list(functions.unknown(node.name, node.offset).faults)
    if not isinstance(node, Column) or node.name.lower() in declared:
        return []
    name = node.name
    if name.lower() in CHANGING or name.lower() in ("user", "current_user", "session_user"):
        message = f"{name} is not a column here, and as a function it gives another value each time"
        return [ExpressionFault(node.offset, "sql-not-deterministic", message, "use _kafka_timestamp or _event_time")]
    columns_hint = f"columns here: {listed(declared.values())}"
    otherwise = f"a text needs quotes: '{name}'; {columns_hint}" if name.isupper() else columns_hint
    hint = _UNIT if name.lower() in dialects.UNITS else did_you_mean(name, declared.values(), otherwise)
    return [ExpressionFault(node.offset, "unknown-column", f"there is no column `{name}`", hint)]


class _Typing:
    """Finds the types of a tree from its leaves, each node once: `x between …` holds x twice."""

    def __init__(self, columns: Mapping[str, Type], declared: Mapping[str, str]) -> None:
        self.columns = columns
        self.declared = declared
        self.pieces: dict[int, Piece] = {}

    def piece(self, node: Node) -> Piece:
        if id(node) not in self.pieces:
            self.pieces[id(node)] = self.typed(node)
        return self.pieces[id(node)]

    def typed(self, node: Node) -> Piece:
        offset = node.offset
        match node:
            case Literal():
                return literals.literal(node)
            case Column(name=name):
                name = self.declared[name.lower()]
                return column(name, self.columns[name], offset)
            case Member(of=owner, name=name):
                return self.member(self.piece(owner), name, offset)
            case Item(of=owner, at=index):
                return operators.item(self.piece(owner), self.piece(index), offset)
            case Cast(operand=operand, type=type, tries=tries):
                return casts.cast(self.piece(operand), type, tries, offset)
            case Is(operand=operand, what=word):
                return comparisons.test(self.piece(operand), word, offset)
            case In(operand=operand, options=options):
                return comparisons.membership(self.piece(operand), [self.piece(option) for option in options], offset)
            case Case(branches=branches, otherwise=otherwise):
                pairs = [(self.piece(condition), self.piece(value)) for condition, value in branches]
                return comparisons.chosen(pairs, self.piece(otherwise) if otherwise else None, offset)
            case Operation(operator=operator, operands=operands):
                return self.operation(operator, operands, offset)
            case Call():
                return self.call(node)
            case Lambda():
                raise refused(
                    offset,
                    "sql-lambda",
                    "a lambda can only be an argument of a function",
                    "transform, filter and exists take one",
                )
        raise AssertionError(f"a node without a meaning: {node}")

    def member(self, piece: Piece, name: str, offset: int) -> Piece:
        struct = piece.type.element if isinstance(piece.type, Array) else piece.type
        if isinstance(struct, Struct) and struct.field(name) is None:
            field_names = [field.name for field in struct.fields]
            raise refused(
                offset,
                "unknown-column",
                f"there is no field {name} in the struct",
                did_you_mean(name, field_names, f"fields here: {listed(field_names)}"),
            )
        return operators.member(piece, name, offset)

    def call(self, node: Call) -> Piece:
        arguments = [None if isinstance(argument, Lambda) else self.piece(argument) for argument in node.arguments]

        def body(index: int, parameter_types: Sequence[Type]) -> Piece | None:
            argument = node.arguments[index]
            assert isinstance(argument, Lambda), "only a lambda is typed late"
            return self.typed_lambda(argument, parameter_types)

        return functions.called(node, arguments, body)

    def typed_lambda(self, node: Lambda, parameter_types: Sequence[Type]) -> Piece | None:
        """Returns a lambda whose parameters have these types, or None if it has another number of them. Its parameters hide the row's
        columns."""
        if len(node.parameters) != len(parameter_types):
            return None
        types = dict(zip(node.parameters, parameter_types, strict=True))
        declared = {**self.declared, **{name.lower(): name for name in types}}
        piece = _Typing({**self.columns, **types}, declared).piece(node.body)
        parameters = ", ".join(identifier(name) for name in node.parameters)
        arrow = f"{parameters} -> " if len(parameter_types) == 1 else f"({parameters}) -> "
        return replace(piece, sql=arrow + piece.sql, constant=None, arrow=arrow)

    def operation(self, operator: str, operands: tuple[Node, ...], offset: int) -> Piece:
        pieces = [self.piece(operand) for operand in operands]
        match operator, pieces:
            case "and" | "or", _:
                return comparisons.logic(operator, pieces, offset)
            case "not", [piece]:
                return comparisons.negation(piece, offset)
            case _, [piece]:
                return operators.signed(operator, piece, offset)
            case "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>", [left_side, right_side]:
                return comparisons.comparison(operator, left_side, right_side, offset)
            case "like" | "ilike" | "rlike", [left_side, pattern, *escape]:
                return comparisons.matching(operator, left_side, pattern, escape[0] if escape else None, offset)
            case "&" | "|" | "^", _:
                return operators.bits(operator, pieces, offset)
            case "<<" | ">>" | ">>>", [left_side, right_side]:
                return operators.shifted(operator, left_side, right_side, offset)
            case "||", [left_side, right_side]:
                return operators.joined(pieces, offset, f"({left_side.sql} || {right_side.sql})")
            case _, [left_side, right_side]:
                return operators.arithmetic(operator, left_side, right_side, offset)
        raise AssertionError(f"an operator without a meaning: {operator}")
