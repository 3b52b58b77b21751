"""The types that Spark's ANSI rules give to operators on values of different types."""

from __future__ import annotations

from framework.types import BIGINT, DOUBLE, FLOAT, INTEGRALS, VOID, Decimal, Type, is_fractional, is_integral, is_numeric

_DIGITS = dict(zip(INTEGRALS, (3, 5, 10, 20), strict=True))
_MOST = 38
_KEPT = 6
"""The digits after the point that a result keeps at least, when it is too long for a decimal."""


def as_decimal(type: Type) -> Decimal:
    """The decimal that holds every value of an integral type."""
    return type if isinstance(type, Decimal) else Decimal(_DIGITS[type], 0)


def wider(left: Type, right: Type) -> Type | None:
    """The type that both sides of a comparison, or two branches, take; None where Spark or this language has none."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if not (is_numeric(left) and is_numeric(right)):
        return None
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        if is_fractional(left) or is_fractional(right):
            return DOUBLE
        return _wider_decimal(as_decimal(left), as_decimal(right))
    if is_integral(left) and is_integral(right):
        return max(left, right, key=INTEGRALS.index)
    return FLOAT if left == right else DOUBLE


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
    both = wider(left, right)
    assert both is not None, "two numeric types always have a wider one"
    return both


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
