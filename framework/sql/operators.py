"""Operators: the type of each for its operands, by Spark's ANSI rules.

*Limit* Stricter than Spark where it takes a text for a number or for a condition: `+`, `-`, `and` and their like refuse texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal as Number
from decimal import InvalidOperation

from framework.sql import coercion, patterns
from framework.sql.faults import ExpressionError, refused
from framework.sql.literals import exact, moment
from framework.sql.pieces import Piece, composed
from framework.sql.quote import identifier
from framework.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAYS,
    INT,
    INTEGRALS,
    MONTHS,
    STRING,
    TIME,
    TIMES,
    TIMESTAMP,
    VARIANT,
    VOID,
    Array,
    Atom,
    Decimal,
    Map,
    Struct,
    Type,
    holds_map,
    is_fractional,
    is_integral,
    is_numeric,
    parts,
)

_INTERVALS: tuple[Type, ...] = (MONTHS, TIME, DAYS)
_COMPARING = ("=", "<>", "<", "<=", ">", ">=", "<=>", "IN")


def name(type: Type) -> str:
    return "NULL" if type == VOID else str(type)


def mismatch(offset: int, what: str, left: Piece, right: Piece) -> ExpressionError:
    """The error for two values of types that do not fit, with a hint that changes neither value."""
    pair = {left.type, right.type}
    if VOID in pair:
        why = "<=> NULL is IS NULL" if what == "<=>" else f"{what} NULL is always NULL"
        return refused(offset, "sql-type", why, "write x IS NULL, or IS NOT NULL")
    hint = "make both sides the same type"
    if STRING in pair:
        hint = _beside_text(what, left if right.type == STRING else right)
    needs = f"{what} needs two values that go together, not {left.type} and {right.type}"
    return refused(offset, "sql-type", needs, hint)


def _beside_text(what: str, other: Piece) -> str:
    """The hint for a text with another type. In a comparison the text is cast; elsewhere the text must stay as it is."""
    if other.constant is not None and re.fullmatch(r"[-\w.]+", other.constant):
        return f"write it as text: '{other.constant}'"
    if what in _COMPARING:
        return f"cast the text: cast(x as {other.type}), or try_cast(x as {other.type}) for null where it is none"
    return f"cast the {other.type} to text: cast(x as string)"


def together(what: str, pieces: Sequence[Piece], texts: bool = True) -> Type:
    """The common type that Spark gives compared values or branches. With `texts`, a literal text is read as what stands beside it."""
    values = [piece for piece in pieces if not (texts and piece.type == STRING and piece.constant is not None)] or [*pieces]
    widest, type = values[0], values[0].type
    for piece in values[1:]:
        both = coercion.wider(type, piece.type)
        if both is None:
            raise mismatch(piece.offset, what, widest, piece)
        if both != type:
            widest = piece
        type = both
    literals = [piece for piece in pieces if piece not in values]
    if not literals or type in (STRING, VOID):
        return STRING if literals else type
    common = coercion.beside_text(type)
    if common is None:
        raise mismatch(literals[0].offset, what, widest, literals[0])
    for piece in literals:
        _reads(piece, common, what)
    return common


def _reads(text: Piece, type: Type, what: str) -> None:
    """Refuse a literal text that is nothing of the type beside which it stands: each row would be a bad one."""
    constant = (text.constant or "").strip()
    if is_numeric(type):
        try:
            good = not is_integral(type) or Number(constant) == int(Number(constant))
        except (InvalidOperation, ValueError, OverflowError):
            good = constant.lower() in ("nan", "inf", "infinity", "-inf", "-infinity") and is_fractional(type)
        hint = f"as text beside a number: cast(x as string); otherwise write a {type}"
    elif type in TIMES:
        good = moment(constant)
        hint = "write date'2026-01-31'" if type == DATE else "write timestamp'2026-01-31 10:00:00'"
    else:
        good = type != BOOLEAN or constant.lower() in ("true", "false", "t", "f", "y", "n", "yes", "no", "1", "0")
        hint = "write true or false"
    if not good:
        message = f"{what} takes '{constant[:40]}' as a {type} here, which it is not"
        raise refused(text.offset, "sql-type", message, hint)


def mixed(pieces: Sequence[Piece], type: Type) -> bool:
    """Whether a value has to be cast to the common type in a way that can fail."""
    return any(piece.type not in (type, VOID) and not coercion.holds(type, piece.type) for piece in pieces)


def comparison(operator: str, left: Piece, right: Piece, offset: int) -> Piece:
    if VOID in (left.type, right.type):
        raise mismatch(offset, operator, left, right)
    type = together(operator, (left, right))
    _comparable(type, offset)
    return composed(offset, f"({left.sql} {operator} {right.sql})", BOOLEAN, (left, right), mixed((left, right), type))


def _comparable(type: Type, offset: int) -> None:
    if holds_map(type):
        raise refused(offset, "sql-type", "maps cannot be compared", "compare single values: attributes['key']")
    if VARIANT in parts(type):
        raise refused(offset, "sql-type", "variants cannot be compared", "compare single values: variant_get(x, '$.a', 'int')")


def truth(piece: Piece, what: str) -> Piece:
    if piece.type != BOOLEAN:
        hint = "write a comparison: x <> 0" if is_numeric(piece.type) else "write a comparison, or x IS NOT NULL"
        raise refused(piece.offset, "sql-type", f"{what} needs true or false, not {name(piece.type)}", hint)
    return piece


def logic(operator: str, operands: Sequence[Piece], offset: int) -> Piece:
    for operand in operands:
        truth(operand, operator.upper())
    return composed(offset, f"({f' {operator.upper()} '.join(operand.sql for operand in operands)})", BOOLEAN, operands, False)


def negation(piece: Piece, offset: int) -> Piece:
    return composed(offset, f"(NOT {truth(piece, 'NOT').sql})", BOOLEAN, (piece,), False)


def test(piece: Piece, what: str, offset: int) -> Piece:
    """`IS NULL`, `IS TRUE`, `IS FALSE`."""
    if what != "null":
        truth(piece, f"IS {what.upper()}")
    return composed(offset, f"({piece.sql} IS {what.upper()})", BOOLEAN, (piece,), False)


def membership(piece: Piece, options: Sequence[Piece], offset: int) -> Piece:
    """`IN`"""
    for each in (piece, *options):
        if each.type == VOID:
            raise refused(each.offset, "sql-type", "NULL in IN never matches", "leave it out, and add OR x IS NULL")
    all_pieces = (piece, *options)
    type = together("IN", all_pieces)
    _comparable(type, offset)
    sql = f"({piece.sql} IN ({', '.join(option.sql for option in options)}))"
    return composed(offset, sql, BOOLEAN, all_pieces, mixed(all_pieces, type))


def matching(operator: str, piece: Piece, pattern: Piece, escape: Piece | None, offset: int) -> Piece:
    if piece.type != STRING:
        hint = "cast it: cast(x as string)"
        raise refused(piece.offset, "sql-type", f"{operator.upper()} needs a string, not {name(piece.type)}", hint)
    if operator == "rlike":
        patterns.regular(pattern)
    elif escape:
        if len(patterns.text(escape, "the escape character")) != 1:
            raise refused(escape.offset, "sql-type", "the escape character is one character", "write escape '/'")
    else:
        patterns.like(pattern)
    behind = f" ESCAPE {escape.sql}" if escape else ""
    return composed(offset, f"({piece.sql} {operator.upper()} {pattern.sql}{behind})", BOOLEAN, (piece,), bool(escape))


def chosen(branches: Sequence[tuple[Piece, Piece]], otherwise: Piece | None, offset: int) -> Piece:
    """`CASE` and `if`"""
    for condition, _ in branches:
        truth(condition, "a condition")
    values = [value for _, value in branches] + ([otherwise] if otherwise else [])
    type = together("CASE", values)
    whens = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in branches)
    last = f" ELSE {otherwise.sql}" if otherwise else ""
    parts = [*values, *(condition for condition, _ in branches)]
    return composed(offset, f"(CASE {whens}{last} END)", type, parts, mixed(values, type))


def arithmetic(operator: str, left: Piece, right: Piece, offset: int, function: str = "") -> Piece:
    """`+ - * / % div`, or the function that computes the same."""
    type = _of_times(operator, left, right) or _of_numbers(operator, left, right)
    sql = f"{function}({left.sql}, {right.sql})" if function else f"({left.sql} {operator} {right.sql})"
    safe = is_fractional(type) and operator in ("+", "-", "*")
    return composed(offset, sql, type, (left, right), not safe)


def _of_numbers(operator: str, left: Piece, right: Piece) -> Type:
    for side in (left, right):
        if not is_numeric(side.type):
            raise _not_a_number(operator, side, left, right)
    if operator == "div" and (is_fractional(left.type) or is_fractional(right.type)):
        side = left if is_fractional(left.type) else right
        raise refused(side.offset, "sql-type", f"div needs whole numbers, not {side.type}", "write floor(a / b)")
    return coercion.arithmetic(operator, _operand_type(left, right), _operand_type(right, left))


def _of_times(operator: str, left: Piece, right: Piece) -> Type | None:
    """The type of an operation of which one side is a time or an interval; None of others and of those that there are not."""
    one, other = left.type, right.type
    if operator == "+" and (one in _INTERVALS or is_integral(one)) and other in TIMES:
        one, other = other, one
    if operator in ("+", "-"):
        if one in _INTERVALS and (both := coercion.wider(one, other)):
            return both
        if one in TIMES and other in _INTERVALS:
            return TIMESTAMP if one == DATE and other == TIME else one
        if one == DATE and other in INTEGRALS[:3]:
            return DATE
        if operator == "-" and one in TIMES and other in TIMES:
            return DAYS if one == other == DATE else TIME
    if operator == "*" and is_numeric(one) and other in _INTERVALS:
        one, other = other, one
    if operator in ("*", "/") and one in _INTERVALS and is_numeric(other):
        return MONTHS if one == MONTHS else TIME
    return BIGINT if operator == "div" and one in _INTERVALS and coercion.wider(one, other) else None


def _operand_type(piece: Piece, other: Piece) -> Type:
    return exact(piece) if isinstance(other.type, Decimal) else piece.type


def _not_a_number(operator: str, side: Piece, left: Piece, right: Piece) -> ExpressionError:
    hint = "join texts with ||, or cast it to a number" if side.type == STRING else "name a number inside it, or cast it"
    if side.type in TIMES:
        hint = "a time takes an interval, a date also a number of days: at + interval 1 day"
    if side.type in _INTERVALS:
        hint = "an interval is added to a date or timestamp: at + interval 1 day"
    return refused(side.offset, "sql-type", f"{operator} needs numbers, not {name(side.type)}", hint)


def signed(operator: str, piece: Piece, offset: int) -> Piece:
    """`-x`, `+x`, `~x`"""
    if operator == "~":
        return bits("~", (piece,), offset)
    if not is_numeric(piece.type) and piece.type not in _INTERVALS:
        raise _not_a_number(operator, piece, piece, piece)
    if operator == "+":
        # A literal keeps its sign: in an operation with a decimal Spark counts the digits of 998, but not those of +998.
        return piece if piece.constant is None else replace(piece, sql=f"(+ {piece.sql})", constant=None)
    return composed(offset, f"(- {piece.sql})", piece.type, (piece,))


def bits(operator: str, pieces: Sequence[Piece], offset: int) -> Piece:
    """`& | ^ ~`"""
    for piece in pieces:
        if not is_integral(piece.type):
            needs = f"{operator} needs whole numbers, not {name(piece.type)}"
            power = operator == "^" and is_numeric(piece.type)
            raise refused(piece.offset, "sql-type", needs, "write pow(n, 2) for a power" if power else "conditions: AND, OR, NOT")
    type = together(operator, pieces)
    sql = f"(~ {pieces[0].sql})" if operator == "~" else f"({pieces[0].sql} {operator} {pieces[1].sql})"
    return composed(offset, sql, type, pieces, False)


def shifted(operator: str, left: Piece, right: Piece, offset: int) -> Piece:
    """`<<`, `>>`, `>>>`"""
    for side in (left, right):
        if not is_integral(side.type):
            raise refused(side.offset, "sql-type", f"{operator} needs whole numbers, not {name(side.type)}", "cast(x as bigint)")
    return composed(offset, f"({left.sql} {operator} {right.sql})", BIGINT if left.type == BIGINT else INT, (left, right))


def joined(pieces: Sequence[Piece], offset: int, sql: str) -> Piece:
    """`a || b`, `concat(a, b)`: texts, binaries or lists."""
    if any(isinstance(piece.type, Array) for piece in pieces):
        return composed(offset, sql, together("||", pieces), pieces)
    for piece in pieces:
        if not isinstance(piece.type, Atom | Decimal):
            raise refused(piece.offset, "sql-type", f"|| joins texts and lists, not {piece.type}", "to_json(x) is a text")
    binary = all(str(piece.type) in ("binary", "void") for piece in pieces)
    return composed(
        offset, sql, next((piece.type for piece in pieces if piece.type != VOID), STRING) if binary else STRING, pieces, False
    )


def member(piece: Piece, name: str, offset: int) -> Piece:
    """`struct.field`; of a list of structs the list of that field."""
    type = piece.type.element if isinstance(piece.type, Array) else piece.type
    if not isinstance(type, Struct):
        hint = f"write x['{name}']" if isinstance(type, Map) else "only a struct has fields"
        raise refused(offset, "sql-type", f"a {piece.type} has no field {name}", hint)
    field = type.field(name)
    assert field is not None, "names are checked before types"
    of_each = Array(field.type) if isinstance(piece.type, Array) else field.type
    return composed(offset, f"{piece.sql}.{identifier(field.name)}", of_each, (piece,), False)


def item(piece: Piece, at: Piece, offset: int) -> Piece:
    """`array[0]`, `map['key']`"""
    if isinstance(piece.type, Map):
        if coercion.wider(piece.type.key, at.type) is None:
            hint = f"cast it: cast(x as {piece.type.key})"
            raise refused(at.offset, "sql-type", f"the map's keys are {piece.type.key}, not {name(at.type)}", hint)
        return composed(offset, f"{piece.sql}[{at.sql}]", piece.type.value, (piece, at), at.type != piece.type.key)
    if not isinstance(piece.type, Array):
        raise refused(offset, "sql-type", f"a {piece.type} has no items", "only arrays and maps have")
    if at.type not in INTEGRALS[:3]:
        # Spark cuts a bigint to its lower half, and returns another item.
        hint = "cast it: cast(x as int)" if is_integral(at.type) else "the first one is x[0]"
        raise refused(at.offset, "sql-type", f"an array's item is named by an int, not {name(at.type)}", hint)
    return composed(offset, f"{piece.sql}[{at.sql}]", piece.type.element, (piece, at))
