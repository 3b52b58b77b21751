"""Values that a spec writes beside a column, as SQL literals with which the column compares as they are written: never rounded, nor of a
type that does not hold them."""

from __future__ import annotations

import re
from decimal import Decimal

from framework import types
from framework.spec.scalars import read_time
from framework.sql.quote import literal
from framework.types import BOOLEAN, DATE, STRING, TIMES, TIMESTAMP_NTZ, Type, is_fractional, is_integral, is_numeric

_NUMBER = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?([eE][+-]?[0-9]{1,3})?")
_ZONED = re.compile(r"T.*(Z|[+-][0-9]{2}:[0-9]{2})$")
_BITS = dict(zip(types.INTEGRALS, (8, 16, 32, 64), strict=True))
_LONGEST = 38  # digits of a decimal


def of(text: str, type_: Type, equals: bool) -> str | None:
    """The value for a column of this type; None where there is none, or where it `equals` no value that the column can have."""
    if type_ == STRING:
        return literal(text)
    if type_ == BOOLEAN:
        return f"cast({literal(text)} as boolean)" if text in ("true", "false") else None
    if is_numeric(type_):
        return _number(text, type_, equals) if _NUMBER.fullmatch(text) else None
    return _moment(text, type_, equals) if type_ in TIMES else None


def is_after(one: str, other: str, type_: Type) -> bool:
    """Whether the first of two values comes after the second."""
    if is_numeric(type_):
        return Decimal(one) > Decimal(other)
    if type_ in TIMES:
        return read_time(one) > read_time(other)
    return type_ == STRING and one.encode() > other.encode()


def _number(text: str, type_: Type, equals: bool) -> str | None:
    if is_fractional(type_):
        return f"cast({literal(text)} as {type_.sql})"
    _, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int), "neither infinite nor NaN"
    plain = "".join(map(str, digits)).lstrip("0")
    short = plain.rstrip("0")
    scale = max(0, -(exponent + len(plain) - len(short))) if short else 0
    whole = max(0, len(plain) + exponent) if short else 0
    value = f"{Decimal(text):.{scale}f}"
    if _has(type_, Decimal(text), whole, scale):
        return f"cast({literal(value)} as {type_.sql})"
    if equals or whole + scale > _LONGEST:
        return None
    return f"cast({literal(value)} as decimal({whole + scale},{scale}))"


def _has(type_: Type, value: Decimal, whole: int, scale: int) -> bool:
    """Whether a column of this type can have the value."""
    if is_integral(type_):
        return scale == 0 and -(2 ** (_BITS[type_] - 1)) <= value < 2 ** (_BITS[type_] - 1)
    assert isinstance(type_, types.Decimal), type_
    return scale <= type_.scale and whole <= type_.precision - type_.scale


def _moment(text: str, type_: Type, equals: bool) -> str | None:
    try:
        read_time(text)
    except ValueError:
        return None
    at = f"cast({literal(text)} as timestamp)"
    if type_ == TIMESTAMP_NTZ:
        return f"cast({at} as timestamp_ntz)" if _ZONED.search(text) else f"cast({literal(text)} as timestamp_ntz)"
    if type_ == DATE and len(text) == len("2026-01-05"):
        return f"cast({literal(text)} as date)"
    return None if type_ == DATE and equals else at
