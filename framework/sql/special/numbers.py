"""Functions of numbers whose type depends on a literal or on digits of decimals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from framework.base import types
from framework.base.types import BIGINT, DOUBLE, INT, STRING, Decimal, Type, is_numeric
from framework.sql import comparisons, operators, patterns
from framework.sql.arguments import Use
from framework.sql.pieces import Piece, composed
from framework.sql.suggested import cast_hint


def zero(use: Use) -> Piece:
    """Returns `zeroifnull` or `nullifzero`."""
    (piece,) = use.some(1, 1)
    nought = Piece("0", INT, offset=piece.offset, constant="0")
    type = comparisons.together(use.name, (piece, nought)) if use.name == "zeroifnull" else piece.type
    if not is_numeric(piece.type):
        raise use.fault(f"takes a number here, not {comparisons.name(piece.type)}", cast_hint(piece, "double"), piece)
    return composed(use.offset, use.sql(), type, (piece,))


def rounded(use: Use) -> Piece:
    """Returns `round` or `bround`, whose number of places is a literal."""
    piece = use.some(1, 2)[0]
    places = use.integer(use.arguments[1], -37, 37) if len(use.arguments) == 2 else 0
    type = _number(use, piece)
    if isinstance(type, Decimal):
        digits = type.precision - type.scale + 1
        scale = min(type.scale, max(places, 0))
        type = Decimal(min(max(digits, 1 - places) if places < 0 else digits + scale, 38), scale)
    return composed(use.offset, use.sql(), type, (piece,))


def whole(use: Use) -> Piece:
    """Returns `ceil` or `floor`. With a number of places the result is a decimal."""
    piece = use.some(1, 2)[0]
    type = _number(use, piece)
    if len(use.arguments) == 1:
        result: Type = Decimal(min(type.precision - type.scale + 1, 38), 0) if isinstance(type, Decimal) else BIGINT
        return composed(use.offset, use.sql(), result, (piece,))
    places = use.integer(use.arguments[1], -37, 37)
    digits = _DIGITS.get(type) or (type if isinstance(type, Decimal) else Decimal(30, 15))
    scale = min(digits.scale, max(places, 0))
    precision = (
        max(digits.precision - digits.scale + 1, 1 - places) + scale
        if places < 0
        else digits.precision - digits.scale + 1 + scale
    )
    return composed(use.offset, use.sql(), Decimal(min(precision, 38), scale), (piece,))


_DIGITS: Mapping[Type, Decimal] = {
    **dict(zip(types.INTEGRALS, (Decimal(3, 0), Decimal(5, 0), Decimal(10, 0), Decimal(20, 0)), strict=True)),
    types.FLOAT: Decimal(14, 7),
}


def _number(use: Use, piece: Piece) -> Type:
    if piece.type == STRING:
        return DOUBLE
    if not is_numeric(piece.type):
        raise use.fault(f"takes a number here, not {comparisons.name(piece.type)}", cast_hint(piece, "double"), piece)
    return piece.type


def operation(use: Use) -> Piece:
    """Returns `mod`, `try_add` and the like, operators that are written as functions."""
    left_side, right_side = use.some(2, 2)
    return operators.arithmetic(_OPERATORS[use.name], left_side, right_side, use.offset, use.name)


_OPERATORS = {
    "mod": "%", "pmod": "%", "try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%",
}  # fmt: skip


def number_of(use: Use) -> Piece:
    """Returns `to_number('1,234.50', '9,999.99')`, a decimal with as many digits as the format has."""
    piece, form = use.some(2, 2)
    text = patterns.text(form, "a format of numbers").upper()
    digits = re.sub(r"[^09D.]", "", text.replace("PR", "").replace("MI", ""))
    whole_digits, _, fraction = digits.replace("D", ".").partition(".")
    precision = len(whole_digits) + len(fraction)
    if not re.fullmatch(r"(MI|S)?\$?[09GDPRMIS,.]*\$?(MI|S|PR)?", text) or not 0 < precision <= 38 or "." in fraction:
        raise use.fault(f"does not know the format '{text}'", "write for example '9,999.99'", form)
    return composed(use.offset, use.sql(), Decimal(precision, len(fraction)), (piece,))


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    **dict.fromkeys(("round", "bround"), rounded),
    **dict.fromkeys(("ceil", "ceiling", "floor"), whole),
    **dict.fromkeys(("nullifzero", "zeroifnull"), zero),
    **dict.fromkeys(_OPERATORS, operation),
    **dict.fromkeys(("to_number", "try_to_number"), number_of),
}
