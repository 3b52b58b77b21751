"""Operators: the type of each for its operands, by Spark's ANSI rules.

*Limit* Stricter than Spark where it takes a text for a number: `+`, `-` and their like refuse texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from framework.base.types import (
    BIGINT,
    DATE,
    DAYS,
    INT,
    INTEGRALS,
    MONTHS,
    STRING,
    TIME,
    TIMES,
    TIMESTAMP,
    VOID,
    Array,
    Atom,
    Decimal,
    Map,
    Struct,
    Type,
    is_fractional,
    is_integral,
    is_numeric,
)
from framework.sql import coercion, comparisons, operand_remedies
from framework.sql.faults import ExpressionError, refused
from framework.sql.literals import exact
from framework.sql.pieces import Piece, composed
from framework.sql.quote import identifier
from framework.sql.suggested import cast_hint, code, written

_INTERVALS: tuple[Type, ...] = (MONTHS, TIME, DAYS)


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
        raise refused(
            side.offset,
            "sql-type",
            f"div needs whole numbers, not {side.type}",
            operand_remedies.suggest_for_division(left, right),
        )
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
    hint = operand_remedies.suggest_for_number(operator, side, left, right)
    return refused(side.offset, "sql-type", f"{operator} needs numbers, not {comparisons.name(side.type)}", hint)


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
            needs = f"{operator} needs whole numbers, not {comparisons.name(piece.type)}"
            raise refused(piece.offset, "sql-type", needs, operand_remedies.suggest_for_bits(operator, piece, tuple(pieces)))
    type = comparisons.together(operator, pieces)
    sql = f"(~ {pieces[0].sql})" if operator == "~" else f"({pieces[0].sql} {operator} {pieces[1].sql})"
    return composed(offset, sql, type, pieces, False)


def shifted(operator: str, left: Piece, right: Piece, offset: int) -> Piece:
    """`<<`, `>>`, `>>>`"""
    for side in (left, right):
        if not is_integral(side.type):
            needs = f"{operator} needs whole numbers, not {comparisons.name(side.type)}"
            raise refused(side.offset, "sql-type", needs, cast_hint(side, BIGINT))
    return composed(offset, f"({left.sql} {operator} {right.sql})", BIGINT if left.type == BIGINT else INT, (left, right))


def joined(pieces: Sequence[Piece], offset: int, sql: str) -> Piece:
    """`a || b`, `concat(a, b)`: texts, binaries or lists."""
    if any(isinstance(piece.type, Array) for piece in pieces):
        return composed(offset, sql, comparisons.together("||", pieces), pieces)
    for piece in pieces:
        if not isinstance(piece.type, Atom | Decimal):
            raise refused(
                piece.offset,
                "sql-type",
                f"|| joins texts and lists, not {piece.type}",
                f"write {code(f'to_json({written(piece)})')}",
            )
    binary = all(str(piece.type) in ("binary", "void") for piece in pieces)
    return composed(
        offset, sql, next((piece.type for piece in pieces if piece.type != VOID), STRING) if binary else STRING, pieces, False
    )


def member(piece: Piece, name: str, offset: int) -> Piece:
    """`struct.field`; of a list of structs the list of that field."""
    type = piece.type.element if isinstance(piece.type, Array) else piece.type
    if not isinstance(type, Struct):
        raise refused(offset, "sql-type", f"a {piece.type} has no field {name}", operand_remedies.suggest_for_member(piece, name))
    field = type.field(name)
    assert field is not None, "names are checked before types"
    of_each = Array(field.type) if isinstance(piece.type, Array) else field.type
    return composed(offset, f"{piece.sql}.{identifier(field.name)}", of_each, (piece,), False)


def item(piece: Piece, at: Piece, offset: int) -> Piece:
    """`array[0]`, `map['key']`"""
    if isinstance(piece.type, Map):
        if coercion.wider(piece.type.key, at.type) is None:
            wrong = f"the map's keys are {piece.type.key}, not {comparisons.name(at.type)}"
            raise refused(at.offset, "sql-type", wrong, operand_remedies.suggest_for_key(piece, at))
        return composed(offset, f"{piece.sql}[{at.sql}]", piece.type.value, (piece, at), at.type != piece.type.key)
    if not isinstance(piece.type, Array):
        raise refused(offset, "sql-type", f"a {piece.type} has no items", operand_remedies.suggest_for_item(piece, at))
    if at.type not in INTEGRALS[:3]:
        # Spark cuts a bigint to its lower half, and returns another item.
        wrong = f"an array's item is named by an int, not {comparisons.name(at.type)}"
        raise refused(at.offset, "sql-type", wrong, operand_remedies.suggest_for_index(piece, at))
    return composed(offset, f"{piece.sql}[{at.sql}]", piece.type.element, (piece, at))
