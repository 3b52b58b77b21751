"""Values that need a common type: comparisons, conditions and branches, and their types by Spark's ANSI rules.

*Limit* Stricter than Spark where it takes a text for a condition: `and`, `or` and `not` refuse texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from framework.base.types import (
    BOOLEAN,
    STRING,
    TIMES,
    VARIANT,
    VOID,
    Type,
    holds_map,
    is_fractional,
    is_integral,
    is_numeric,
    parts,
)
from framework.sql import coercion, operand_remedies, patterns, remedies
from framework.sql.faults import ExpressionError, refused
from framework.sql.literals import moment
from framework.sql.pieces import Piece, composed
from framework.sql.suggested import cast_hint, code, written

# Texts that Spark reads as a number.
_WHOLE = re.compile(r"[-+]?[0-9]+")
_REAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?[dDfF]?")


def name(type: Type) -> str:
    return "NULL" if type == VOID else str(type)


def mismatch(offset: int, operation: str, left_side: Piece, right_side: Piece) -> ExpressionError:
    """Returns the error for two values of types that do not fit."""
    if VOID in (left_side.type, right_side.type):
        message = "<=> NULL is IS NULL" if operation == "<=>" else f"{operation} NULL is always NULL"
        return refused(
            offset,
            "sql-type",
            message,
            remedies.suggest_for_null(operation, left_side if right_side.type == VOID else right_side),
        )
    needs = f"{operation} needs two values that go together, not {left_side.type} and {right_side.type}"
    return refused(offset, "sql-type", needs, remedies.suggest_for_mismatch(operation, left_side, right_side))


def together(operation: str, pieces: Sequence[Piece], texts: bool = True) -> Type:
    """Returns the common type that Spark gives compared values or branches. With `texts`, a literal text takes the type of the others."""
    values = [piece for piece in pieces if not (texts and piece.type == STRING and piece.constant is not None)] or [*pieces]
    compared_ids = {id(piece) for piece in values}
    widest, type = values[0], values[0].type
    for piece in values[1:]:
        wider_type = coercion.wider(type, piece.type)
        if wider_type is None:
            raise mismatch(piece.offset, operation, widest, piece)
        if wider_type != type:
            widest = piece
        type = wider_type
    literals = [piece for piece in pieces if id(piece) not in compared_ids]
    if not literals or type in (STRING, VOID):
        return STRING if literals else type
    text_type = coercion.beside_text(type)
    if text_type is None:
        raise mismatch(literals[0].offset, operation, widest, literals[0])
    for piece in literals:
        _require_readable(piece, text_type, operation, widest)
    return text_type


def _require_readable(text: Piece, type: Type, operation: str, other_side: Piece) -> None:
    """Refuses a literal text that is no value of the type with which it is compared: each row would be a bad one."""
    constant = (text.constant or "").strip()
    if is_numeric(type):
        is_readable = (_WHOLE if is_integral(type) else _REAL).fullmatch(constant) is not None
        is_readable = is_readable or (is_fractional(type) and constant.lower() in ("nan", "inf", "infinity", "-inf", "-infinity"))
    elif type in TIMES:
        is_readable = moment(constant)
    else:
        is_readable = type != BOOLEAN or constant.lower() in ("true", "false", "t", "f", "y", "n", "yes", "no", "1", "0")
    if not is_readable:
        message = f"{operation} takes '{constant[:40]}' as a {type} here, which it is not"
        raise refused(text.offset, "sql-type", message, remedies.suggest_for_unread_text(operation, text, type, other_side))


def mixed(pieces: Sequence[Piece], type: Type) -> bool:
    """Whether a value has to be cast to the common type in a way that can fail."""
    return any(piece.type not in (type, VOID) and not coercion.holds(type, piece.type) for piece in pieces)


def comparison(operator: str, left_side: Piece, right_side: Piece, offset: int) -> Piece:
    if VOID in (left_side.type, right_side.type):
        raise mismatch(offset, operator, left_side, right_side)
    type = together(operator, (left_side, right_side))
    _comparable(type, offset)
    return composed(
        offset,
        f"({left_side.sql} {operator} {right_side.sql})",
        BOOLEAN,
        (left_side, right_side),
        mixed((left_side, right_side), type),
    )


def _comparable(type: Type, offset: int) -> None:
    if holds_map(type):
        raise refused(offset, "sql-type", "maps cannot be compared", "compare single values: `attributes['key']`")
    if VARIANT in parts(type):
        raise refused(offset, "sql-type", "variants cannot be compared", "compare single values: `variant_get(x, '$.a', 'int')`")


def truth(piece: Piece, noun: str) -> Piece:
    if piece.type != BOOLEAN:
        raise refused(
            piece.offset,
            "sql-type",
            f"{noun} needs true or false, not {name(piece.type)}",
            operand_remedies.suggest_for_truth(piece),
        )
    return piece


def logic(operator: str, operands: Sequence[Piece], offset: int) -> Piece:
    for operand in operands:
        truth(operand, operator.upper())
    return composed(offset, f"({f' {operator.upper()} '.join(operand.sql for operand in operands)})", BOOLEAN, operands, False)


def negation(piece: Piece, offset: int) -> Piece:
    return composed(offset, f"(NOT {truth(piece, 'NOT').sql})", BOOLEAN, (piece,), False)


def test(piece: Piece, word: str, offset: int) -> Piece:
    """Returns the test `IS NULL`, `IS TRUE` or `IS FALSE`."""
    if word != "null":
        truth(piece, f"IS {word.upper()}")
    return composed(offset, f"({piece.sql} IS {word.upper()})", BOOLEAN, (piece,), False)


def membership(piece: Piece, options: Sequence[Piece], offset: int) -> Piece:
    """Returns the test `IN`."""
    for operand in (piece, *options):
        if operand.type == VOID:
            hint = f"leave it out; {code(f'or {written(piece)} is null')} behind IN takes nulls, which NOT IN leaves out already"
            raise refused(operand.offset, "sql-type", "NULL in IN never matches", hint)
    all_pieces = (piece, *options)
    type = together("IN", all_pieces)
    _comparable(type, offset)
    sql = f"({piece.sql} IN ({', '.join(option.sql for option in options)}))"
    return composed(offset, sql, BOOLEAN, all_pieces, mixed(all_pieces, type))


def matching(operator: str, piece: Piece, pattern: Piece, escape: Piece | None, offset: int) -> Piece:
    if piece.type != STRING:
        hint = cast_hint(piece, STRING)
        raise refused(piece.offset, "sql-type", f"{operator.upper()} needs a string, not {name(piece.type)}", hint)
    if pattern.type == STRING and pattern.constant is None and not escape:
        noun = "a regular expression" if operator == "rlike" else "a LIKE pattern"
        message = f"{noun} is a literal text here, so that it is checked before any row"
        raise refused(pattern.offset, "sql-type", message, operand_remedies.suggest_for_pattern(piece, pattern))
    if operator == "rlike":
        patterns.regular(pattern)
    elif escape:
        if pattern.type != STRING:
            raise refused(
                pattern.offset, "sql-type", f"a pattern is a string, not {name(pattern.type)}", "write `like 'a/%' escape '/'`"
            )
        if len(patterns.text(escape, "the escape character")) != 1:
            raise refused(escape.offset, "sql-type", "the escape character is one character", "write `escape '/'`")
    else:
        patterns.like(pattern)
    escape_clause = f" ESCAPE {escape.sql}" if escape else ""
    return composed(offset, f"({piece.sql} {operator.upper()} {pattern.sql}{escape_clause})", BOOLEAN, (piece,), bool(escape))


def chosen(branches: Sequence[tuple[Piece, Piece]], otherwise: Piece | None, offset: int) -> Piece:
    """Returns the value of `CASE` or `if`."""
    for condition, _ in branches:
        truth(condition, "a condition")
    values = [value for _, value in branches] + ([otherwise] if otherwise else [])
    type = together("CASE", values)
    whens = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in branches)
    else_clause = f" ELSE {otherwise.sql}" if otherwise else ""
    parts = [*values, *(condition for condition, _ in branches)]
    return composed(offset, f"(CASE {whens}{else_clause} END)", type, parts, mixed(values, type))
