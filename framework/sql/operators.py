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


def arithmetic(operator: str, left_side: Piece, right_side: Piece, offset: int, function: str = "") -> Piece:
    """Returns `+ - * / % div`, or the function that computes the same."""
    type = _of_times(operator, left_side, right_side) or _of_numbers(operator, left_side, right_side)
    sql = f"{function}({left_side.sql}, {right_side.sql})" if function else f"({left_side.sql} {operator} {right_side.sql})"
    is_safe = is_fractional(type) and operator in ("+", "-", "*")
    return composed(offset, sql, type, (left_side, right_side), not is_safe)


def _of_numbers(operator: str, left_side: Piece, right_side: Piece) -> Type:
    for side in (left_side, right_side):
        if not is_numeric(side.type):
            raise _not_a_number(operator, side, left_side, right_side)
    if operator == "div" and (is_fractional(left_side.type) or is_fractional(right_side.type)):
        side = left_side if is_fractional(left_side.type) else right_side
        raise refused(
            side.offset,
            "sql-type",
            f"div needs whole numbers, not {side.type}",
            operand_remedies.suggest_for_division(left_side, right_side),
        )
    return coercion.arithmetic(operator, _operand_type(left_side, right_side), _operand_type(right_side, left_side))


def _of_times(operator: str, left_side: Piece, right_side: Piece) -> Type | None:
    """Returns the type of an operation of which one side is a time or an interval; None for others, and for those that do not exist."""
    left_type, right_type = left_side.type, right_side.type
    if operator == "+" and (left_type in _INTERVALS or is_integral(left_type)) and right_type in TIMES:
        left_type, right_type = right_type, left_type
    if operator in ("+", "-"):
        if left_type in _INTERVALS and (wider_type := coercion.wider(left_type, right_type)):
            return wider_type
        if left_type in TIMES and right_type in _INTERVALS:
            return TIMESTAMP if left_type == DATE and right_type == TIME else left_type
        if left_type == DATE and right_type in INTEGRALS[:3]:
            return DATE
        if operator == "-" and left_type in TIMES and right_type in TIMES:
            return DAYS if left_type == right_type == DATE else TIME
    if operator == "*" and is_numeric(left_type) and right_type in _INTERVALS:
        left_type, right_type = right_type, left_type
    if operator in ("*", "/") and left_type in _INTERVALS and is_numeric(right_type):
        return MONTHS if left_type == MONTHS else TIME
    return BIGINT if operator == "div" and left_type in _INTERVALS and coercion.wider(left_type, right_type) else None


def _operand_type(piece: Piece, other_side: Piece) -> Type:
    return exact(piece) if isinstance(other_side.type, Decimal) else piece.type


def _not_a_number(operator: str, side: Piece, left_side: Piece, right_side: Piece) -> ExpressionError:
    hint = operand_remedies.suggest_for_number(operator, side, left_side, right_side)
    return refused(side.offset, "sql-type", f"{operator} needs numbers, not {comparisons.name(side.type)}", hint)


def signed(operator: str, piece: Piece, offset: int) -> Piece:
    """Returns `-x`, `+x` or `~x`."""
    if operator == "~":
        return bits("~", (piece,), offset)
    if not is_numeric(piece.type) and piece.type not in _INTERVALS:
        raise _not_a_number(operator, piece, piece, piece)
    if operator == "+":
        # A literal keeps its sign: in an operation with a decimal Spark counts the digits of 998, but not those of +998.
        return piece if piece.constant is None else replace(piece, sql=f"(+ {piece.sql})", constant=None)
    return composed(offset, f"(- {piece.sql})", piece.type, (piece,))


def bits(operator: str, pieces: Sequence[Piece], offset: int) -> Piece:
    """Returns an operation of `& | ^ ~`."""
    for piece in pieces:
        if not is_integral(piece.type):
            needs = f"{operator} needs whole numbers, not {comparisons.name(piece.type)}"
            raise refused(piece.offset, "sql-type", needs, operand_remedies.suggest_for_bits(operator, piece, tuple(pieces)))
    type = comparisons.together(operator, pieces)
    sql = f"(~ {pieces[0].sql})" if operator == "~" else f"({pieces[0].sql} {operator} {pieces[1].sql})"
    return composed(offset, sql, type, pieces, False)


def shifted(operator: str, left_side: Piece, right_side: Piece, offset: int) -> Piece:
    """Returns an operation of `<<`, `>>` or `>>>`."""
    for side in (left_side, right_side):
        if not is_integral(side.type):
            needs = f"{operator} needs whole numbers, not {comparisons.name(side.type)}"
            raise refused(side.offset, "sql-type", needs, cast_hint(side, BIGINT))
    return composed(
        offset,
        f"({left_side.sql} {operator} {right_side.sql})",
        BIGINT if left_side.type == BIGINT else INT,
        (left_side, right_side),
    )


def joined(pieces: Sequence[Piece], offset: int, sql: str) -> Piece:
    """Returns `a || b` or `concat(a, b)`, of texts, binaries or lists."""
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
    is_binary = all(str(piece.type) in ("binary", "void") for piece in pieces)
    return composed(
        offset, sql, next((piece.type for piece in pieces if piece.type != VOID), STRING) if is_binary else STRING, pieces, False
    )


def member(piece: Piece, name: str, offset: int) -> Piece:
    """Returns `struct.field`, or for a list of structs the list of that field."""
    type = piece.type.element if isinstance(piece.type, Array) else piece.type
    if not isinstance(type, Struct):
        raise refused(offset, "sql-type", f"a {piece.type} has no field {name}", operand_remedies.suggest_for_member(piece, name))
    field = type.field(name)
    assert field is not None, "names are checked before types"
    result_type = Array(field.type) if isinstance(piece.type, Array) else field.type
    return composed(offset, f"{piece.sql}.{identifier(field.name)}", result_type, (piece,), False)


def item(piece: Piece, index: Piece, offset: int) -> Piece:
    """Returns `array[0]` or `map['key']`."""
    if isinstance(piece.type, Map):
        if coercion.wider(piece.type.key, index.type) is None:
            message = f"the map's keys are {piece.type.key}, not {comparisons.name(index.type)}"
            raise refused(index.offset, "sql-type", message, operand_remedies.suggest_for_key(piece, index))
        return composed(offset, f"{piece.sql}[{index.sql}]", piece.type.value, (piece, index), index.type != piece.type.key)
    if not isinstance(piece.type, Array):
        raise refused(offset, "sql-type", f"a {piece.type} has no items", operand_remedies.suggest_for_item(piece, index))
    if index.type not in INTEGRALS[:3]:
        # Spark cuts a bigint to its lower half, and returns another item.
        message = f"an array's item is named by an int, not {comparisons.name(index.type)}"
        raise refused(index.offset, "sql-type", message, operand_remedies.suggest_for_index(piece, index))
    return composed(offset, f"{piece.sql}[{index.sql}]", piece.type.element, (piece, index))
