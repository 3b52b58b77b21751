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
    """Returns the decimal that holds every value of an integral type."""
    return type if isinstance(type, Decimal) else Decimal(_DIGITS[type], 0)


def wider(left_type: Type, right_type: Type) -> Type | None:
    """Returns the type that both sides of a comparison, or two branches, take; None where Spark has none, or only one side is a text."""
    if left_type == right_type or right_type == VOID:
        return left_type
    if left_type == VOID:
        return right_type
    if left_type in (DAYS, TIME) and right_type in (DAYS, TIME):
        return TIME
    if left_type in TIMES and right_type in TIMES:
        return TIMESTAMP if TIMESTAMP in (left_type, right_type) else TIMESTAMP_NTZ
    match left_type, right_type:
        case Array(), Array():
            element = wider(left_type.element, right_type.element)
            return Array(element) if element else None
        case Map(), Map():
            key, value = wider(left_type.key, right_type.key), wider(left_type.value, right_type.value)
            return Map(key, value) if key and value else None
        case Struct(), Struct():
            return _wider_struct(left_type, right_type)
    return _wider_number(left_type, right_type) if is_numeric(left_type) and is_numeric(right_type) else None


def beside_text(type: Type) -> Type | None:
    """Returns the type that Spark gives a text together with a value of this type."""
    if is_integral(type):
        return BIGINT
    if is_numeric(type):
        return DOUBLE
    return type if type in (BOOLEAN, BINARY, *TIMES) else None


def _wider_struct(left_type: Struct, right_type: Struct) -> Type | None:
    """Returns the wider type of structs with the same names in the same order; None for others."""
    if [folded(field.name) for field in left_type.fields] != [folded(field.name) for field in right_type.fields]:
        return None
    pairs = zip(left_type.fields, right_type.fields, strict=True)
    wider_fields = [(left_field.name, wider(left_field.type, right_field.type)) for left_field, right_field in pairs]
    return (
        Struct(tuple(Field(name, type) for name, type in wider_fields if type)) if all(type for _, type in wider_fields) else None
    )


def holds(type: Type, narrower: Type) -> bool:
    """Whether a number of the narrower type surely has a value in `type`."""
    if not is_numeric(narrower) or not is_numeric(type):
        return False
    if isinstance(type, Decimal) and not is_fractional(narrower):
        digits = as_decimal(narrower)
        return digits.scale <= type.scale and digits.precision - digits.scale <= type.precision - type.scale
    return is_fractional(type) or is_integral(type)


def _wider_number(left_type: Type, right_type: Type) -> Type:
    if isinstance(left_type, Decimal) or isinstance(right_type, Decimal):
        if is_fractional(left_type) or is_fractional(right_type):
            return DOUBLE
        return _wider_decimal(as_decimal(left_type), as_decimal(right_type))
    if is_integral(left_type) and is_integral(right_type):
        return max(left_type, right_type, key=INTEGRALS.index)
    return DOUBLE


def _wider_decimal(left_type: Decimal, right_type: Decimal) -> Decimal:
    scale = max(left_type.scale, right_type.scale)
    precision = max(left_type.precision - left_type.scale, right_type.precision - right_type.scale) + scale
    return Decimal(min(precision, _MOST), max(0, scale - max(0, precision - _MOST)))


def _fitted(precision: int, scale: int) -> Decimal:
    """Returns a decimal that fits: digits after the point are dropped before digits in front of it."""
    if precision <= _MOST:
        return Decimal(precision, scale)
    return Decimal(_MOST, max(_MOST - (precision - scale), min(scale, _KEPT)))


def arithmetic(operator: str, left_type: Type, right_type: Type) -> Type:
    """Returns the type that `+ - * / % div` give for two numeric types."""
    has_decimal = isinstance(left_type, Decimal) or isinstance(right_type, Decimal)
    if has_decimal and not is_fractional(left_type) and not is_fractional(right_type):
        return _decimal(operator, as_decimal(left_type), as_decimal(right_type))
    if operator == "div":
        return BIGINT
    if operator == "/" or has_decimal:
        return DOUBLE
    if left_type == right_type:
        return left_type
    return _wider_number(left_type, right_type)


def _decimal(operator: str, left_type: Decimal, right_type: Decimal) -> Type:
    whole = max(left_type.precision - left_type.scale, right_type.precision - right_type.scale)
    scale = max(left_type.scale, right_type.scale)
    if operator in ("+", "-"):
        return _fitted(whole + scale + 1, scale)
    if operator == "*":
        return _fitted(left_type.precision + right_type.precision + 1, left_type.scale + right_type.scale)
    if operator == "/":
        scale = max(_KEPT, left_type.scale + right_type.precision + 1)
        return _fitted(left_type.precision - left_type.scale + right_type.scale + scale, scale)
    if operator == "%":
        return _fitted(min(left_type.precision - left_type.scale, right_type.precision - right_type.scale) + scale, scale)
    return BIGINT
