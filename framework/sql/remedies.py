"""Hints for values of types that do not go together: the SQL to write instead, made of what the author wrote.

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


def suggest_for_null(what: str, value: Piece) -> str:
    """The hint for a comparison with NULL."""
    if what in ("<", "<=", ">", ">="):
        return f"remove it, or write {code(f'{written(value)} is null')}"
    test = "is not null" if what == "<>" else "is null"
    return f"write {code(f'{written(value)} {test}')}"


def suggest_for_mismatch(what: str, left: Piece, right: Piece) -> str:
    """The hint for two values that Spark does not compare, or between which it cannot choose."""
    for value, other in ((left, right), (right, left)):
        if isinstance(value.type, Array | Map | Struct):
            return _suggest_for_nested(what, value, other)
    for value, other in ((left, right), (right, left)):
        if value.type == STRING:
            return _suggest_for_text(what, value, other, left)
    for value, other in ((left, right), (right, left)):
        if value.type in INTERVALS.values():
            return _suggest_for_interval(value, other)
        if value.type == BOOLEAN and is_numeric(other.type):
            return _suggest_for_boolean(what, value, other)
        if value.type in TIMES and is_numeric(other.type):
            return _suggest_for_time(value, other)
    for value in (left, right):
        if value.type == BINARY:
            return f"compare its text: {code(cast(value, STRING))}"
    return "compare values of one type"


def _suggest_for_text(what: str, text: Piece, other: Piece, left: Piece) -> str:
    if other.type in INTERVALS.values():
        return "write an interval without quotes around all of it: `interval 90 minutes`"
    if text.constant is not None and is_numeric(other.type) and as_number(text):
        return f"write it as a number: `{as_number(text)}`"
    type = _compared_type(other)
    both = (cast(text, type), written(other)) if text is left else (written(other), cast(text, type))
    compared = f"{both[0]} {what} {both[1]}"
    number = other.constant if is_numeric(other.type) and _NUMBER.fullmatch(other.constant or "") else None
    if what in ("greatest", "least"):
        return cast_hint(text, type)
    if what == "IN":
        texts = f", or the numbers as texts, such as `'{number}'`" if number else ""
        return f"write {code(cast(text, type))} in place of {code(written(text))}{texts}"
    if what in _EQUAL and number:
        as_text = f"{written(text)} {what} '{number}'"
        return f"write {code(as_text)} for the text, or {code(compared)} for the number"
    if what in _COMPARING:
        return f"write {code(compared)}"
    as_text = f"`'{number}'`" if number else code(cast(other, STRING))
    return f"write {as_text} for a text, or {code(cast(text, type))} for {_article(type)}"


def _article(type: Type) -> str:
    return "a number" if is_numeric(type) else f"a {type}"


def _compared_type(other: Piece) -> Type:
    """The type to which a text is cast to be compared: one that holds each number of a text, where doubles are exact."""
    type = other.type
    if not is_numeric(type):
        return type
    digits = type.precision if isinstance(type, Decimal) else 19 if str(type) == "bigint" else 0
    return type if digits > _EXACT else DOUBLE


def as_number(text: Piece) -> str:
    """The number that a literal text is meant to be, or an empty text."""
    constant = re.sub(r"(?<=[0-9])[_, ](?=[0-9]{3})", "", (text.constant or "").strip())
    return constant if _NUMBER.fullmatch(constant) else ""


def suggest_for_unread_text(what: str, text: Piece, type: Type, other: Piece) -> str:
    """The hint for a literal text that is no value of the type next to which it stands."""
    if is_numeric(type):
        if number := as_number(text):
            return f"write it as a number: `{number}`"
        if what in _COMPARING:
            return f"write a number in place of '{(text.constant or '')[:40]}', such as `1`"
        as_text = f"'{other.constant}'" if other.constant is not None else cast(other, STRING)
        return f"write {code(as_text)} in place of {code(written(other))} for texts, or a number here"
    if type in TIMES:
        example = _as_date(text.constant) or (_DATE if type == DATE else "timestamp'2026-01-31 10:00:00'")
        return f"write a time that exists, such as `{example}`"
    return "write `true` or `false`"


def _suggest_for_boolean(what: str, boolean: Piece, number: Piece) -> str:
    truth = {"0": "false", "1": "true"}.get(number.constant or "")
    if what not in _COMPARING and truth:
        return f"write `{truth}` for a boolean, or {code(cast(boolean, 'int'))} for a number"
    if what not in _COMPARING:
        return f"write {code(cast(boolean, 'int'))} for a number, or {code(cast(number, BOOLEAN))} for a boolean"
    if truth and what != "IN":
        return f"write {code(f'{written(boolean)} {what} {truth}')}"
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
    """The date that eight digits are meant to be, or an empty text."""
    digits = constant if re.fullmatch(r"[0-9]{8}", constant or "") else None
    date = f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if digits else ""
    return f"date'{date}'" if date and real(date) else ""


def _suggest_for_interval(interval: Piece, other: Piece) -> str:
    amount = other.constant if other.constant is not None and is_integral(other.type) else "10"
    unit = "months" if interval.type == MONTHS else "days" if interval.type == DAYS else "minutes"
    return f"compare it with an interval in the unit that you mean, such as `interval {amount} {unit}`"


def _suggest_for_nested(what: str, nested: Piece, other: Piece) -> str:
    sql = written(nested)
    if isinstance(nested.type, Array):
        if isinstance(other.type, Array):
            return "compare lists of one type"
        if what not in _COMPARING and coercion.wider(nested.type.element, other.type) is not None:
            return f"write {code(f'array({without_parentheses(written(other))})')}"
        if what in _EQUAL and what != "IN":
            contains = f"array_contains({sql}, {_as_item(other, nested.type.element)})"
            return f"write {code(f'not {contains}' if what == '<>' else contains)}"
        return f"take one of its items: {code(f'{sql}[0]')}"
    if isinstance(nested.type, Struct):
        fields = [field for field in nested.type.fields if field.type == other.type] or [*nested.type.fields]
        return f"take one of its fields: {code(f'{sql}.{fields[0].name}')}"
    value = f"{sql}['key']"
    return f"take one of its values: {code(value)}"


def _as_item(value: Piece, type: Type) -> str:
    """The SQL of a value as an item of a list of this type."""
    if coercion.wider(type, value.type) is not None:
        return without_parentheses(written(value))
    number = value.constant if type == STRING and _NUMBER.fullmatch(value.constant or "") else None
    return f"'{number}'" if number else cast(value, type)
