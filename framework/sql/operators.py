"""Operators: the result type of each for its operands, and its form that never throws."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from framework.sql import coercion, patterns
from framework.sql.faults import ExpressionError, refused
from framework.sql.literals import exact, whole
from framework.sql.pieces import NULL, Piece, all_of, any_of, as_timestamp, present, strict, within_limit
from framework.sql.quote import identifier
from framework.sql.tree import Literal
from framework.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    INTEGRALS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Array,
    Decimal,
    Map,
    Struct,
    Type,
    holds_map,
    is_fractional,
    is_integral,
    is_numeric,
)

_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_ZERO: dict[Type, str] = {TINYINT: "0Y", SMALLINT: "0S", INT: "0", BIGINT: "0L"}
SMALLEST: dict[Type, str] = {TINYINT: "-128Y", SMALLINT: "-32768S", INT: "-2147483648", BIGINT: "-9223372036854775808L"}


def mismatch(offset: int, what: str, left: Piece, right: Piece) -> ExpressionError:
    """The error for two values of types that do not fit, with a hint that changes neither value."""
    pair = {left.type, right.type}
    if VOID in pair:
        return refused(offset, "sql-type", f"{what} NULL is always NULL", "write x IS NULL, or IS NOT NULL")
    hint = "make both sides the same type"
    if STRING in pair:
        hint = _beside_text(what, *((left, right) if left.type == STRING else (right, left)))
    needs = f"{what} needs two values that go together, not {left.type} and {right.type}"
    return refused(offset, "sql-type", needs, hint)


def _beside_text(what: str, text: Piece, other: Piece) -> str:
    """The hint for a text with another type. In a comparison the text is cast; elsewhere the text must stay as it is."""
    if other.type in (DATE, TIMESTAMP):
        return (
            "write a literal as date'2026-01-31'" if other.type == DATE else "write a literal as timestamp'2026-01-31 10:00:00'"
        )
    if other.constant is not None and re.fullmatch(r"[-\w.]+", other.constant):
        return f"write it as text: '{other.constant}'"
    if is_numeric(other.type) and re.fullmatch(r"-?\d{1,9}(\.\d+)?", text.constant or ""):
        return f"write the number without quotes: {text.constant}"
    if what in _COMPARING and (is_numeric(other.type) or other.type == BOOLEAN):
        return f"cast the text: cast(x as {other.type}), or try_cast(x as {other.type}) for null where it is none"
    return f"cast the {other.type} to text: cast(x as string)"


_COMPARING = ("=", "<>", "<", "<=", ">", ">=", "<=>", "IN")


def together(what: str, pieces: Sequence[Piece]) -> tuple[Type, tuple[Piece, ...]]:
    """The common type that Spark gives compared values or branches; next to timestamps, dates become timestamps."""
    piece_types = [piece.type for piece in pieces]
    if TIMESTAMP in piece_types and DATE in piece_types:
        pieces = [as_timestamp(piece) for piece in pieces]
    widest, type = pieces[0], pieces[0].type
    for piece in pieces[1:]:
        both = coercion.wider(type, piece.type)
        if both is None:
            raise mismatch(piece.offset, what, widest, piece)
        if both != type:
            widest = piece
        type = both
    return type, tuple(pieces)


def comparison(operator: str, left: Piece, right: Piece, offset: int) -> Piece:
    if VOID in (left.type, right.type):
        raise mismatch(offset, operator, left, right)
    type, (left, right) = together(operator, (left, right))
    if holds_map(type):
        raise refused(offset, "sql-type", "maps cannot be compared", "compare single values: attributes['key']")
    return strict(offset, f"({left.sql} {operator} {right.sql})", BOOLEAN, (left, right), eager=operator == "<=>")


def truth(piece: Piece, what: str) -> Piece:
    if piece.type != BOOLEAN:
        hint = "write a comparison: x <> 0" if is_numeric(piece.type) else "write a comparison, or x IS NOT NULL"
        raise refused(
            piece.offset, "sql-type", f"{what} needs true or false, not {'NULL' if piece.type == VOID else piece.type}", hint
        )
    return piece


def logic(operator: str, operands: Sequence[Piece], offset: int) -> Piece:
    """`and`, `or`: an operand is evaluated only while the operands before it have not decided the result."""
    for operand in operands:
        truth(operand, operator.upper())
    undecided = "IS NOT FALSE" if operator == "and" else "IS NOT TRUE"
    error = operands[-1].error
    for operand in reversed(operands[:-1]):
        error = any_of(operand.error, all_of(f"({operand.sql} {undecided})", error))
    return within_limit(
        Piece(f"({f' {operator.upper()} '.join(operand.sql for operand in operands)})", BOOLEAN, error, offset=offset)
    )


def negation(piece: Piece, offset: int) -> Piece:
    return strict(offset, f"(NOT {truth(piece, 'NOT').sql})", BOOLEAN, (piece,))


def test(piece: Piece, what: str, offset: int) -> Piece:
    """`IS NULL`, `IS TRUE`, `IS FALSE`."""
    if what != "null":
        truth(piece, f"IS {what.upper()}")
    return strict(offset, f"({piece.sql} IS {what.upper()})", BOOLEAN, (piece,))


def membership(piece: Piece, options: Sequence[Piece], offset: int) -> Piece:
    """`IN`: an option is evaluated only while no option before it was equal."""
    for each in (piece, *options):
        if each.type == VOID:
            raise refused(each.offset, "sql-type", "NULL in IN never matches", "leave it out, and add OR x IS NULL")
    type, (piece, *options) = together("IN", (piece, *options))
    if holds_map(type):
        raise refused(offset, "sql-type", "maps cannot be compared", "compare single values: attributes['key']")
    sql = f"({piece.sql} IN ({', '.join(option.sql for option in options)}))"
    within_limit(Piece(sql, BOOLEAN, None, offset=offset))
    error: str | None = None
    for option in reversed(options):
        rest = all_of(f"(({piece.sql} = {option.sql}) IS NOT TRUE)", error)
        error = any_of(option.error, rest)
    return within_limit(Piece(sql, BOOLEAN, any_of(piece.error, all_of(present(piece), error)), offset=offset))


def matching(operator: str, piece: Piece, pattern: Piece, offset: int) -> Piece:
    if piece.type != STRING:
        raise refused(
            piece.offset, "sql-type", f"{operator.upper()} needs a string, not {piece.type}", "cast it: cast(x as string)"
        )
    (patterns.regular if operator == "rlike" else patterns.like)(pattern)
    return strict(offset, f"({piece.sql} {operator.upper()} {pattern.sql})", BOOLEAN, (piece,))


def chosen(branches: Sequence[tuple[Piece, Piece]], otherwise: Piece | None, offset: int) -> Piece:
    """`CASE` and `if`: only the branch that is reached is evaluated."""
    for condition, _ in branches:
        truth(condition, "a condition")
    last = otherwise or Piece("NULL", VOID, None, offset=offset)
    type, (*values, last) = together("CASE", [*(value for _, value in branches), last])
    error = last.error
    for (condition, _), value in zip(reversed(branches), reversed(values), strict=True):
        reached = all_of(f"({condition.sql} IS TRUE)", value.error)
        error = any_of(condition.error, reached, all_of(f"({condition.sql} IS NOT TRUE)", error))
    whens = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for (condition, _), value in zip(branches, values, strict=True))
    return within_limit(Piece(f"(CASE {whens} ELSE {last.sql} END)", type, error, offset=offset))


def arithmetic(operator: str, left: Piece, right: Piece, offset: int, tries: bool = False) -> Piece:
    """`+ - * / % div`; `tries` if the analyst wrote the try_ form, which gives null instead of an error."""
    for side in (left, right):
        if not is_numeric(side.type):
            raise _not_a_number(operator, side, left, right)
    type = coercion.arithmetic(operator, _operand_type(left, right), _operand_type(right, left))
    fails = None if tries else NULL
    if operator == "div":
        return _whole_division(left, right, offset)
    backwards = operator in ("/", "%")
    safe = is_fractional(type) and operator in ("+", "-", "*")
    if safe or (backwards and not isinstance(type, Decimal) and nonzero(right)):
        return strict(offset, f"({left.sql} {operator} {right.sql})", type, (left, right), backwards=backwards)
    if tries and backwards:
        # A zero on the right gives null before the left is evaluated.
        left = replace(left, error=all_of(f"({right.sql} <> 0)", left.error))
    return strict(offset, f"{_TRIED[operator]}({left.sql}, {right.sql})", type, (left, right), fails, backwards)


def nonzero(piece: Piece) -> bool:
    """Whether a piece is a literal that is not zero."""
    return (
        piece.constant is not None
        and any(digit in "123456789" for digit in piece.constant.lower().split("e")[0])
        and is_numeric(piece.type)
    )


def _operand_type(piece: Piece, other: Piece) -> Type:
    return exact(piece) if isinstance(other.type, Decimal) else piece.type


def _not_a_number(operator: str, side: Piece, left: Piece, right: Piece) -> ExpressionError:
    hint = "join texts with ||, or cast it to a number" if side.type == STRING else "name a number inside it, or cast it"
    if side.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        hint = (
            "use datediff(a, b), or unix_timestamp(a) - unix_timestamp(b)"
            if left.type == right.type or operator == "-"
            else "add an interval: at + interval 1 day"
        )
    return refused(side.offset, "sql-type", f"{operator} needs numbers, not {'NULL' if side.type == VOID else side.type}", hint)


def _whole_division(left: Piece, right: Piece, offset: int) -> Piece:
    for side in (left, right):
        if not is_integral(side.type):
            raise refused(side.offset, "sql-type", f"div needs whole numbers, not {side.type}", "write floor(a / b)")
    divisor = whole(right)
    if divisor is not None and divisor not in (0, -1):
        return strict(offset, f"({left.sql} div {right.sql})", BIGINT, (left, right), backwards=True)
    smallest = f" AND {left.sql} <> {SMALLEST[BIGINT]}" if left.type == BIGINT else ""
    fits = (
        f"WHEN {right.sql} = -1{smallest} THEN {right.sql} WHEN {right.sql} NOT IN (0, -1) THEN {right.sql}"
        if smallest
        else f"WHEN {right.sql} <> 0 THEN {right.sql}"
    )
    return strict(offset, f"({left.sql} div CASE {fits} END)", BIGINT, (left, right), NULL, backwards=True)


def moved(operator: str, left: Piece, interval: Literal, offset: int, tries: bool = False) -> Piece:
    """A date or timestamp plus or minus an interval."""
    if left.type not in (DATE, TIMESTAMP):
        raise refused(
            left.offset, "sql-type", f"an interval is added to a date or timestamp, not to {left.type}", "cast it to timestamp"
        )
    clock = interval.value in ("hour", "minute", "second")
    if left.type == DATE and clock:
        left = as_timestamp(left)
    if tries:
        # For dates and times the try_ form also catches what its argument throws.
        left = replace(left, error=None)
    sql = f"{_TRIED[operator]}({left.sql}, {interval.text})"
    return strict(offset, sql, left.type, (left,), None if tries else NULL)


def days(operator: str, left: Piece, right: Piece, offset: int) -> Piece:
    """`date + 1`"""
    return strict(offset, f"{'date_add' if operator == '+' else 'date_sub'}({left.sql}, {right.sql})", DATE, (left, right))


def signed(operator: str, piece: Piece, offset: int) -> Piece:
    """`-x`, `+x`, `~x`"""
    if operator == "~":
        return bits("~", (piece,), offset)
    if not is_numeric(piece.type):
        raise _not_a_number(operator, piece, piece, piece)
    if operator == "+":
        # A literal keeps its sign: in an operation with a decimal Spark counts the digits of 998, but not those of +998.
        return piece if piece.constant is None else replace(piece, sql=f"(+ {piece.sql})", constant=None)
    if piece.type in _ZERO:
        return strict(offset, f"try_subtract({_ZERO[piece.type]}, {piece.sql})", piece.type, (piece,), NULL)
    precise(operator, piece)
    return strict(offset, f"(- {piece.sql})", piece.type, (piece,))


def precise(operator: str, piece: Piece) -> None:
    """Spark negates a decimal in 34 digits: a longer one is rounded, and may then not fit."""
    if isinstance(piece.type, Decimal) and piece.type.precision > 34:
        raise refused(
            piece.offset,
            "sql-type",
            f"{operator} is exact up to 34 digits, not for {piece.type}",
            "cast it to a smaller decimal first",
        )


def bits(operator: str, pieces: Sequence[Piece], offset: int) -> Piece:
    """`& | ^ ~`"""
    for piece in pieces:
        if not is_integral(piece.type):
            raise refused(
                piece.offset, "sql-type", f"{operator} needs whole numbers, not {piece.type}", "use AND, OR or NOT for conditions"
            )
    type, _ = together(operator, pieces)
    sql = f"(~ {pieces[0].sql})" if operator == "~" else f"({pieces[0].sql} {operator} {pieces[1].sql})"
    return strict(offset, sql, type, pieces)


def joined(left: Piece, right: Piece, offset: int) -> Piece:
    """`a || b`"""
    for side in (left, right):
        if side.type != STRING:
            hint = "write a value" if side.type == VOID else "cast it: cast(x as string)"
            if side.type == BOOLEAN:
                hint = "one condition or another is `a or b`; as text: cast(x as string)"
            elif side.constant is not None:
                hint = f"write it as text: '{side.constant}'"
            raise refused(side.offset, "sql-type", f"|| joins strings, not {'NULL' if side.type == VOID else side.type}", hint)
    return strict(offset, f"({left.sql} || {right.sql})", STRING, (left, right))


def member(piece: Piece, name: str, offset: int) -> Piece:
    """`struct.field`"""
    if not isinstance(piece.type, Struct):
        hint = f"write x['{name}']" if isinstance(piece.type, Map) else "only a struct has fields"
        if isinstance(piece.type, Array):
            hint = "take one item first: x[0]"
        raise refused(offset, "sql-type", f"a {piece.type} has no field {name}", hint)
    field = piece.type.field(name)
    assert field is not None, "names are checked before types"
    return strict(offset, f"{piece.sql}.{identifier(field.name)}", field.type, (piece,))


def item(piece: Piece, at: Piece, offset: int) -> Piece:
    """`array[0]`, `map['key']`"""
    if isinstance(piece.type, Map):
        keyed(piece.type, at)
        return strict(offset, f"{piece.sql}[{at.sql}]", piece.type.value, (piece, at))
    if not isinstance(piece.type, Array):
        raise refused(offset, "sql-type", f"a {piece.type} has no items", "only arrays and maps have")
    if at.type not in INTEGRALS[:3]:
        # Spark cuts a bigint to its lower half, and returns another item.
        hint = "cast it: cast(x as int)" if is_integral(at.type) else "the first one is x[0]"
        raise refused(at.offset, "sql-type", f"an array's item is named by an int, not {at.type}", hint)
    outside = f"({at.sql} < 0 OR {at.sql} >= size({piece.sql}))"
    return strict(offset, f"get({piece.sql}, {at.sql})", piece.type.element, (piece, at), outside)


def keyed(map: Map, key: Piece) -> None:
    if key.type != map.key:
        raise refused(key.offset, "sql-type", f"the map's keys are {map.key}, not {key.type}", f"cast it: cast(x as {map.key})")
