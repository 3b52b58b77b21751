"""The types that Spark's ANSI rules give to operators on values of different types."""

from __future__ import annotations

from framework.base.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DAYS,
    DOUBLE,
    INTEGRALS,
    TIME,
    TIMES,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
    folded,
    is_fractional,
    is_integral,
    is_numeric,
)

_DIGITS = dict(zip(INTEGRALS, (3, 5, 10, 20), strict=True))
_MOST = 38
_KEPT = 6
"""The digits after the point that a result keeps at least, when it is too long for a decimal."""


def as_decimal(type: Type) -> Decimal:
    """The decimal that holds every value of an integral type."""
    return type if isinstance(type, Decimal) else Decimal(_DIGITS[type], 0)


def wider(left: Type, right: Type) -> Type | None:
    """The type that both sides of a comparison, or two branches, take; None where Spark has none, and for a text beside something else."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if left in (DAYS, TIME) and right in (DAYS, TIME):
        return TIME
    if left in TIMES and right in TIMES:
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    match left, right:
        case Array(), Array():
            element = wider(left.element, right.element)
            return Array(element) if element else None
        case Map(), Map():
            key, value = wider(left.key, right.key), wider(left.value, right.value)
            return Map(key, value) if key and value else None
        case Struct(), Struct():
            return _wider_struct(left, right)
    return _wider_number(left, right) if is_numeric(left) and is_numeric(right) else None


def beside_text(other: Type) -> Type | None:
    """The type that Spark gives a text and a value of another type together."""
    if is_integral(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    return other if other in (BOOLEAN, BINARY, *TIMES) else None


def _wider_struct(left: Struct, right: Struct) -> Type | None:
    """Of structs with the same names in the same order."""
    if [folded(field.name) for field in left.fields] != [folded(field.name) for field in right.fields]:
        return None
    pairs = zip(left.fields, right.fields, strict=True)
    both = [(one.name, wider(one.type, other.type)) for one, other in pairs]
    return Struct(tuple(Field(name, type) for name, type in both if type)) if all(type for _, type in both) else None


def holds(type: Type, narrower: Type) -> bool:
    """Whether a number of the narrower type surely has a value in the other."""
    if not is_numeric(narrower) or not is_numeric(type):
        return False
    if isinstance(type, Decimal) and not is_fractional(narrower):
        digits = as_decimal(narrower)
        return digits.scale <= type.scale and digits.precision - digits.scale <= type.precision - type.scale
    return is_fractional(type) or is_integral(type)


def _wider_number(left: Type, right: Type) -> Type:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        if is_fractional(left) or is_fractional(right):
            return DOUBLE
        return _wider_decimal(as_decimal(left), as_decimal(right))
    if is_integral(left) and is_integral(right):
        return max(left, right, key=INTEGRALS.index)
    return DOUBLE


def _wider_decimal(left: Decimal, right: Decimal) -> Decimal:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return Decimal(min(precision, _MOST), max(0, scale - max(0, precision - _MOST)))


def _fitted(precision: int, scale: int) -> Decimal:
    """A decimal that fits: digits after the point are dropped before digits in front of it."""
    if precision <= _MOST:
        return Decimal(precision, scale)
    return Decimal(_MOST, max(_MOST - (precision - scale), min(scale, _KEPT)))


def arithmetic(operator: str, left: Type, right: Type) -> Type:
    """The type that `+ - * / % div` give for two numeric types."""
    decimal = isinstance(left, Decimal) or isinstance(right, Decimal)
    if decimal and not is_fractional(left) and not is_fractional(right):
        return _decimal(operator, as_decimal(left), as_decimal(right))
    if operator == "div":
        return BIGINT
    if operator == "/" or decimal:
        return DOUBLE
    if left == right:
        return left
    return _wider_number(left, right)


def _decimal(operator: str, left: Decimal, right: Decimal) -> Type:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    if operator in ("+", "-"):
        return _fitted(whole + scale + 1, scale)
    if operator == "*":
        return _fitted(left.precision + right.precision + 1, left.scale + right.scale)
    if operator == "/":
        scale = max(_KEPT, left.scale + right.precision + 1)
        return _fitted(left.precision - left.scale + right.scale + scale, scale)
    if operator == "%":
        return _fitted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
    return BIGINT
