"""An analyst's SQL expression, checked and typed before Spark runs.

*Guarantee* Spark gives the same value for the same row, of the type that is said here. For a row for which it throws, `guarded` is null.
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
from framework.sql.faults import ExpressionError, Fault, refused
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
"""Types that only a part of an expression has, and what to write for a column."""
_UNIT = "a unit of time is a text, in front: `date_trunc('month', at)`"

__all__ = ["Checked", "ExpressionError", "Fault", "attempt", "check", "guarded"]


@dataclass(frozen=True)
class Checked:
    """SQL over columns by their declared names. `fails`: it throws for some row; then an attempt has its value and its `error`, which is
    null for a row for which it does not throw."""

    sql: ColumnSql
    type: Type
    fails: bool = False
    error: ColumnSql | None = None


def guarded(checked: Checked, quiet: bool = False) -> Checked:
    """The expression with an attempt of its own."""
    if not checked.fails:
        return checked
    tried = attempt(checked.sql, quiet)
    value, error = (ColumnSql(f"{tried}.{part}", tried.reads) for part in ("value", "error"))
    return Checked(value, checked.type, error=error)


def check(text: str, columns: Mapping[str, Type], more: bool = False) -> Checked:
    """The expression, checked; or ExpressionError, with all unknown names or with the first pair of types that does not fit.

    If there are `more` columns than those given, any name can be one of them.
    """
    return _checked(text, tuple(columns.items()), more)


@lru_cache(maxsize=4096)  # pipelines of one topic, and those like each other, have the same expressions
def _checked(text: str, columns: tuple[tuple[str, Type], ...], more: bool) -> Checked:
    tree = grammar.parse(text)
    others = {node.name: VOID for node, _ in walk(tree) if isinstance(node, Column)} if more else {}
    return typed(tree, {**others, **dict(columns)})


def typed(tree: Node, columns: Mapping[str, Type]) -> Checked:
    """Like `check`, for an expression that is already parsed."""
    declared = {name.lower(): name for name in columns}
    nodes = sorted((node for node, _ in walk(tree)), key=lambda node: node.offset)
    passed_over = {id(node) for call in nodes for node in (*units(call), *_own_variables(call))}
    faults = list(
        islice((fault for node in nodes if id(node) not in passed_over for fault in unknown(node, declared)), MOST_FAULTS)
    )
    if faults:
        raise ExpressionError(*faults)
    used = frozenset(declared[node.name.lower()] for node in nodes if isinstance(node, Column) and id(node) not in passed_over)
    if any(columns[name] == VOID for name in used):
        # The step that computes the column is wrong and already reported, so its uses report nothing.
        return Checked(ColumnSql("NULL", used), VOID)
    piece = _Typing(columns, declared).piece(tree)
    if piece.type == VOID:
        raise _untyped(tree)
    for part in types.parts(piece.type):
        if part in _NO_COLUMN:
            raise refused(piece.offset, "sql-type", f"{_NO_COLUMN[part][0]} cannot be a column", _NO_COLUMN[part][1])
    return Checked(ColumnSql(piece.sql, used), piece.type, piece.fails)


def _untyped(tree: Node) -> ExpressionError:
    if isinstance(tree, Literal):
        return refused(tree.offset, "sql-type", "NULL alone has no type", "give it a type: `cast(null as string)`")
    hint = "write when it is so: `if(price < 0, raise_error('no price'), price)`"
    return refused(tree.offset, "sql-type", "it is NULL or an error for every row, and so has no type", hint)


def _own_variables(node: Node) -> Iterator[Node]:
    """The parameters of a lambda, where its body names them."""
    if isinstance(node, Lambda):
        parameters = {name.lower() for name in node.parameters}
        for part, _ in walk(node.body):
            if isinstance(part, Column) and part.name.lower() in parameters:
                yield part


def units(node: Node) -> Iterator[Node]:
    """The words without quotes that other dialects put among the arguments of a function: `dateadd(day, 1, at)`."""
    if isinstance(node, Call) and node.name in dialects.WRITE:
        for argument in node.arguments:
            if isinstance(argument, Column) and argument.name.lower() in dialects.UNITS | types.NAMES.keys():
                yield argument


def unknown(node: Node, declared: Mapping[str, str]) -> list[Fault]:
    """The fault of a name or a function that there is not. `declared` has names by their lower case."""
    if isinstance(node, Call) and node.name not in functions.names():
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
                return comparisons.test(self.piece(operand), what, at)
            case In(operand=operand, options=options):
                return comparisons.membership(self.piece(operand), [self.piece(option) for option in options], at)
            case Case(branches=branches, otherwise=otherwise):
                pairs = [(self.piece(condition), self.piece(value)) for condition, value in branches]
                return comparisons.chosen(pairs, self.piece(otherwise) if otherwise else None, at)
            case Operation(operator=operator, operands=operands):
                return self.operation(operator, operands, at)
            case Call():
                return self.call(node)
            case Lambda():
                raise refused(
                    at, "sql-lambda", "a lambda can only be an argument of a function", "transform, filter and exists take one"
                )
        raise AssertionError(f"a node without a meaning: {node}")

    def member(self, piece: Piece, name: str, at: int) -> Piece:
        struct = piece.type.element if isinstance(piece.type, Array) else piece.type
        if isinstance(struct, Struct) and struct.field(name) is None:
            field_names = [field.name for field in struct.fields]
            raise refused(
                at,
                "unknown-column",
                f"there is no field {name} in the struct",
                did_you_mean(name, field_names, f"fields here: {listed(field_names)}"),
            )
        return operators.member(piece, name, at)

    def call(self, node: Call) -> Piece:
        arguments = [None if isinstance(argument, Lambda) else self.piece(argument) for argument in node.arguments]

        def body(index: int, given: Sequence[Type]) -> Piece | None:
            argument = node.arguments[index]
            assert isinstance(argument, Lambda), "only a lambda is typed late"
            return self.typed_lambda(argument, given)

        return functions.called(node, arguments, body)

    def typed_lambda(self, node: Lambda, given: Sequence[Type]) -> Piece | None:
        """A lambda whose parameters have these types, or None if it has not so many. Its columns are those of the row, but for its
        parameters."""
        if len(node.parameters) != len(given):
            return None
        types = dict(zip(node.parameters, given, strict=True))
        declared = {**self.declared, **{name.lower(): name for name in types}}
        piece = _Typing({**self.columns, **types}, declared).piece(node.body)
        parameters = ", ".join(identifier(name) for name in node.parameters)
        arrow = f"{parameters} -> " if len(given) == 1 else f"({parameters}) -> "
        return replace(piece, sql=arrow + piece.sql, constant=None, arrow=arrow)

    def operation(self, operator: str, operands: tuple[Node, ...], at: int) -> Piece:
        pieces = [self.piece(operand) for operand in operands]
        match operator, pieces:
            case "and" | "or", _:
                return comparisons.logic(operator, pieces, at)
            case "not", [piece]:
                return comparisons.negation(piece, at)
            case _, [piece]:
                return operators.signed(operator, piece, at)
            case "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>", [left, right]:
                return comparisons.comparison(operator, left, right, at)
            case "like" | "ilike" | "rlike", [left, pattern, *escape]:
                return comparisons.matching(operator, left, pattern, escape[0] if escape else None, at)
            case "&" | "|" | "^", _:
                return operators.bits(operator, pieces, at)
            case "<<" | ">>" | ">>>", [left, right]:
                return operators.shifted(operator, left, right, at)
            case "||", [left, right]:
                return operators.joined(pieces, at, f"({left.sql} || {right.sql})")
            case _, [left, right]:
                return operators.arithmetic(operator, left, right, at)
        raise AssertionError(f"an operator without a meaning: {operator}")
