"""Functions that choose one of their arguments, or compare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.base.types import BOOLEAN, STRING, VOID, holds_map
from framework.sql import comparisons, patterns
from framework.sql.arguments import Use
from framework.sql.pieces import Piece, composed


def coalesce(use: Use) -> Piece:
    pieces = use.some(1) if use.name == "coalesce" else use.some(2, 2)
    type = comparisons.together(use.name, pieces)
    return composed(use.offset, use.sql(), type, pieces, comparisons.mixed(pieces, type))


def extreme(use: Use) -> Piece:
    pieces = use.some(2)
    type = comparisons.together(use.name, pieces, texts=False)
    if holds_map(type) or type == VOID:
        raise use.fault(f"cannot order {comparisons.name(type)}", "name numbers, strings, dates or timestamps")
    return composed(use.offset, use.sql(), type, pieces, comparisons.mixed(pieces, type))


def nullif(use: Use) -> Piece:
    left_side, right_side = use.some(2, 2)
    comparison = comparisons.comparison("=", left_side, right_side, use.offset)
    return composed(use.offset, use.sql(), left_side.type, (left_side, right_side), comparison.fails)


def condition(use: Use) -> Piece:
    test, yes, no = use.some(3, 3)
    chosen = comparisons.chosen([(test, yes)], no, use.offset)
    return composed(use.offset, use.sql(), chosen.type, (chosen,), False)


def nvl2(use: Use) -> Piece:
    test, yes, no = use.some(3, 3)
    type = comparisons.together(use.name, (yes, no))
    return composed(use.offset, use.sql(), type, (test, yes, no), comparisons.mixed((yes, no), type))


def decode(use: Use) -> Piece:
    """Returns `decode`, of bytes and a charset, or of a value, pairs of a searched value and its result, and a default."""
    pieces = use.some(2)
    if len(pieces) == 2:
        for piece in pieces:
            if str(piece.type) not in ("binary", "string", "void"):
                raise use.fault(f"takes bytes and the name of a charset, not {piece.type}", "decode(x, 'utf-8')", piece)
        return composed(use.offset, use.sql(), STRING, pieces)
    searched, values = pieces[1::2], pieces[2::2]
    otherwise = [searched[-1]] if len(searched) > len(values) else []
    comparisons.together("IN", [pieces[0], *searched[: len(values)]])
    return composed(use.offset, use.sql(), comparisons.together(use.name, [*values, *otherwise]), pieces)


def same(use: Use) -> Piece:
    left_side, right_side = use.some(2, 2)
    return composed(use.offset, use.sql(), BOOLEAN, (comparisons.comparison("<=>", left_side, right_side, use.offset),), False)


def raised(use: Use) -> Piece:
    """Returns `raise_error('no price')`, a bad row with these words. It stands where a value would, and has no type of its own."""
    (piece,) = use.some(1, 1)
    patterns.text(piece, "the words of an error")
    return composed(use.offset, use.sql(), VOID, (piece,))


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), coalesce),
    "decode": decode,
    "equal_null": same,
    **dict.fromkeys(("greatest", "least"), extreme),
    "if": condition,
    "nullif": nullif,
    "nvl2": nvl2,
    "raise_error": raised,
}
