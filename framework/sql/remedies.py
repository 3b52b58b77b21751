"""Hints for values whose types do not fit each other: the SQL to write instead, made from the author's own.

*Guarantee* The corrected SQL compares numbers as numbers and times as times. A number becomes a text only where texts are meant: for
equality, or as one of several texts to choose from.
"""

from __future__ import annotations

import re

from framework.base.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    INTERVALS,
    MONTHS,
    STRING,
    TIMES,
    Array,
    Decimal,
    Map,
    Struct,
    Type,
    is_integral,
    is_numeric,
)
from framework.sql import coercion
from framework.sql.literals import real
from framework.sql.pieces import Piece
from framework.sql.suggested import cast, cast_hint, code, without_parentheses, written

_EQUAL = ("=", "<>", "<=>", "IN")
_COMPARING = (*_EQUAL, "<", "<=", ">", ">=", "greatest", "least")
_DATE = "date'2026-01-31'"
_EXACT = 15  # digits that a double holds exactly
_MILLIS = 12  # digits from which a number counts the milliseconds since 1970, not the seconds
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")


def suggest_for_null(operation: str, value: Piece) -> str:
    """Returns the hint for a comparison with NULL."""
    if operation in ("<", "<=", ">", ">="):
        return f"remove it, or write {code(f'{written(value)} is null')}"
    test = "is not null" if operation == "<>" else "is null"
    return f"write {code(f'{written(value)} {test}')}"


def suggest_for_mismatch(operation: str, left_side: Piece, right_side: Piece) -> str:
    """Returns the hint for two values that Spark cannot compare, or between which it cannot choose."""
    for value, other_side in ((left_side, right_side), (right_side, left_side)):
        if isinstance(value.type, Array | Map | Struct):
            return _suggest_for_nested(operation, value, other_side)
    for value, other_side in ((left_side, right_side), (right_side, left_side)):
        if value.type == STRING:
            return _suggest_for_text(operation, value, other_side, left_side)
    for value, other_side in ((left_side, right_side), (right_side, left_side)):
        if value.type in INTERVALS.values():
            return _suggest_for_interval(value, other_side)
        if value.type == BOOLEAN and is_numeric(other_side.type):
            return _suggest_for_boolean(operation, value, other_side)
        if value.type in TIMES and is_numeric(other_side.type):
            return _suggest_for_time(value, other_side)
    for value in (left_side, right_side):
        if value.type == BINARY:
            return f"compare its text: {code(cast(value, STRING))}"
    return "compare values of one type"


def _suggest_for_text(operation: str, text: Piece, other_side: Piece, left_side: Piece) -> str:
    if other_side.type in INTERVALS.values():
        return "write an interval without quotes around all of it: `interval 90 minutes`"
    if text.constant is not None and is_numeric(other_side.type) and as_number(text):
        return f"write it as a number: `{as_number(text)}`"
    type = _compared_type(other_side)
    sides = (cast(text, type), written(other_side)) if text is left_side else (written(other_side), cast(text, type))
    comparison = f"{sides[0]} {operation} {sides[1]}"
    number = other_side.constant if is_numeric(other_side.type) and _NUMBER.fullmatch(other_side.constant or "") else None
    if operation in ("greatest", "least"):
        return cast_hint(text, type)
    if operation == "IN":
        texts = f", or the numbers as texts, such as `'{number}'`" if number else ""
        return f"write {code(cast(text, type))} in place of {code(written(text))}{texts}"
    if operation in _EQUAL and number:
        text_sql = f"{written(text)} {operation} '{number}'"
        return f"write {code(text_sql)} for the text, or {code(comparison)} for the number"
    if operation in _COMPARING:
        return f"write {code(comparison)}"
    text_sql = f"`'{number}'`" if number else code(cast(other_side, STRING))
    return f"write {text_sql} for a text, or {code(cast(text, type))} for {_article(type)}"


def _article(type: Type) -> str:
    return "a number" if is_numeric(type) else f"a {type}"


def _compared_type(other_side: Piece) -> Type:
    """Returns the type to which a text is cast for a comparison: for a number double, or its own type where a double is not exact."""
    type = other_side.type
    if not is_numeric(type):
        return type
    digits = type.precision if isinstance(type, Decimal) else 19 if str(type) == "bigint" else 0
    return type if digits > _EXACT else DOUBLE


def as_number(text: Piece) -> str:
    """Returns the number that a literal text is meant to be, or an empty text."""
    constant = re.sub(r"(?<=[0-9])[_, ](?=[0-9]{3})", "", (text.constant or "").strip())
    return constant if _NUMBER.fullmatch(constant) else ""


def suggest_for_unread_text(operation: str, text: Piece, type: Type, other_side: Piece) -> str:
    """Returns the hint for a literal text that is no value of the type next to which it stands."""
    if is_numeric(type):
        if number := as_number(text):
            return f"write it as a number: `{number}`"
        if operation in _COMPARING:
            return f"write a number in place of '{(text.constant or '')[:40]}', such as `1`"
        text_sql = f"'{other_side.constant}'" if other_side.constant is not None else cast(other_side, STRING)
        return f"write {code(text_sql)} in place of {code(written(other_side))} for texts, or a number here"
    if type in TIMES:
        example = _as_date(text.constant) or (_DATE if type == DATE else "timestamp'2026-01-31 10:00:00'")
        return f"write a time that exists, such as `{example}`"
    return "write `true` or `false`"


def _suggest_for_boolean(operation: str, boolean: Piece, number: Piece) -> str:
    truth = {"0": "false", "1": "true"}.get(number.constant or "")
    if operation not in _COMPARING and truth:
        return f"write `{truth}` for a boolean, or {code(cast(boolean, 'int'))} for a number"
    if operation not in _COMPARING:
        return f"write {code(cast(boolean, 'int'))} for a number, or {code(cast(number, BOOLEAN))} for a boolean"
    if truth and operation != "IN":
        return f"write {code(f'{written(boolean)} {operation} {truth}')}"
    return f"write {code(cast(number, BOOLEAN))} in place of {code(written(number))}"


def _suggest_for_time(time: Piece, number: Piece) -> str:
    if time.type == DATE:
        return f"write a date, such as `{_as_date(number.constant) or _DATE}`"
    sql = without_parentheses(written(number))
    if number.constant is not None and len(number.constant) >= _MILLIS:
        return f"write {code(f'timestamp_millis({sql})')}"
    if number.constant is not None or not is_integral(number.type):
        return f"write {code(f'timestamp_seconds({sql})')}"
    return f"write {code(f'timestamp_millis({sql})')} if it counts milliseconds, {code(f'timestamp_seconds({sql})')} if seconds"


def _as_date(constant: str | None) -> str:
    """Returns the date that eight digits are meant to be, or an empty text."""
    digits = constant if re.fullmatch(r"[0-9]{8}", constant or "") else None
    date = f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if digits else ""
    return f"date'{date}'" if date and real(date) else ""


def _suggest_for_interval(interval: Piece, other_side: Piece) -> str:
    amount = other_side.constant if other_side.constant is not None and is_integral(other_side.type) else "10"
    unit = "months" if interval.type == MONTHS else "days" if interval.type == DAYS else "minutes"
    return f"compare it with an interval in the unit that you mean, such as `interval {amount} {unit}`"


def _suggest_for_nested(operation: str, nested: Piece, other_side: Piece) -> str:
    sql = written(nested)
    if isinstance(nested.type, Array):
        if isinstance(other_side.type, Array):
            return "compare lists of one type"
        if operation not in _COMPARING and coercion.wider(nested.type.element, other_side.type) is not None:
            return f"write {code(f'array({without_parentheses(written(other_side))})')}"
        if operation in _EQUAL and operation != "IN":
            contains = f"array_contains({sql}, {_as_item(other_side, nested.type.element)})"
            return f"write {code(f'not {contains}' if operation == '<>' else contains)}"
        return f"take one of its items: {code(f'{sql}[0]')}"
    if isinstance(nested.type, Struct):
        fields = [field for field in nested.type.fields if field.type == other_side.type] or [*nested.type.fields]
        return f"take one of its fields: {code(f'{sql}.{fields[0].name}')}"
    value = f"{sql}['key']"
    return f"take one of its values: {code(value)}"


def _as_item(value: Piece, type: Type) -> str:
    """Returns SQL of a value as an item of a list of this type."""
    if coercion.wider(type, value.type) is not None:
        return without_parentheses(written(value))
    number = value.constant if type == STRING and _NUMBER.fullmatch(value.constant or "") else None
    return f"'{number}'" if number else cast(value, type)
