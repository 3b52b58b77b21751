"""Turns a spec's values for a column into SQL literals that compare exactly as written: whole numbers and decimals are never
rounded, and times keep their zone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time, timezone
from decimal import Decimal

from framework.base import types
from framework.base.types import BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMES, TIMESTAMP, Type, is_fractional, is_numeric
from framework.language.scalars import read_time
from framework.sql.quote import literal

_NUMBER = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?([eE][+-]?[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?")
_BITS = dict(zip(types.INTEGRALS, (8, 16, 32, 64), strict=True))
_INTEGRAL_DIGITS = {type_: (digits, 0) for type_, digits in zip(types.INTEGRALS, (3, 5, 10, 20), strict=True)}  # as a decimal
_LARGEST: dict[Type, float] = {FLOAT: 3.4028234663852886e38, DOUBLE: 1.7976931348623157e308}
_LONGEST = 38  # digits of a decimal


def sql_literal(text: str, type_: Type, equals: bool) -> str | None:
    """Returns the literal for a column of this type, or None. With `equals`, also None if no value of the column can equal it."""
    if type_ == STRING:
        return literal(text)
    if type_ == BOOLEAN:
        return f"cast({literal(text)} as boolean)" if text in ("true", "false") else None
    if is_numeric(type_):
        return _number(text, type_, equals) if _NUMBER.fullmatch(text) else None
    return _moment(text, type_, equals) if type_ in TIMES else None


def are_numbers(texts: Sequence[str]) -> bool:
    """Whether all texts are numbers that would compare otherwise as texts. Whole numbers with equally many digits are not: they
    compare alike, and are codes, such as postal codes."""
    whole = all(text.isdecimal() for text in texts) and len({len(text) for text in texts}) == 1
    return not whole and all(_NUMBER.fullmatch(text) for text in texts)


def is_after(text: str, other_text: str, type_: Type) -> bool:
    """Whether `text` comes after `other_text`, as values of this type."""
    if is_numeric(type_):
        return Decimal(text) > Decimal(other_text)
    if type_ in TIMES:
        return read_time(text) > read_time(other_text)
    return type_ == STRING and text.encode() > other_text.encode()


def _number(text: str, type_: Type, equals: bool) -> str | None:
    if is_fractional(type_):
        return f"cast({literal(text)} as {type_.sql})" if abs(float(text)) <= _LARGEST[type_] else None
    value = Decimal(text)
    digits, scale = _digits(value)
    type_digits, type_scale = _INTEGRAL_DIGITS.get(type_) or _parts(type_)
    plain = f"{value:.{scale}f}"
    if scale <= type_scale and digits <= type_digits and (type_scale or _is_in_range(value, type_)):
        return f"cast({literal(plain)} as {type_.sql})"
    if equals or max(digits, type_digits) + max(scale, type_scale) > _LONGEST:  # else both are rounded for the comparison
        return None
    return f"cast({literal(plain)} as decimal({max(1, digits + scale)},{scale}))"


def _digits(value: Decimal) -> tuple[int, int]:
    """Returns how many digits a number needs before and after the point."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "neither infinite nor NaN"
    plain = "".join(map(str, digits)).lstrip("0")
    short = plain.rstrip("0")
    if not short:
        return 0, 0
    return max(0, len(plain) + exponent), max(0, len(short) - len(plain) - exponent)


def _parts(type_: Type) -> tuple[int, int]:
    assert isinstance(type_, types.Decimal), type_
    return type_.precision - type_.scale, type_.scale


def _is_in_range(value: Decimal, type_: Type) -> bool:
    return type_ not in _BITS or -(2 ** (_BITS[type_] - 1)) <= value < 2 ** (_BITS[type_] - 1)


def _moment(text: str, type_: Type, equals: bool) -> str | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = read_time(text).astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    if type_ == DATE and moment.time() == time():
        return f"cast({literal(moment.date().isoformat())} as date)"
    as_type = TIMESTAMP if type_ == DATE else type_
    return None if type_ == DATE and equals else f"cast({literal(moment.isoformat(' '))} as {as_type.sql})"
