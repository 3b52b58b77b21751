"""Functions of times whose type depends on a literal word."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.base import types
from framework.base.types import BIGINT, INT, MONTHS, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ, TINYINT, Decimal, Type, is_integral
from framework.sql import comparisons
from framework.sql.arguments import Use
from framework.sql.pieces import Piece, composed
from framework.sql.reserved import words
from framework.sql.special_syntax import UNITS
from framework.sql.suggested import cast_hint


def part(use: Use) -> Piece:
    """Returns `extract(hour from at)` or `date_part('hour', at)`."""
    field, piece = use.some(2, 2)
    if piece.type in types.INTERVALS.values():
        fields = _OF_INTERVALS[MONTHS if piece.type == MONTHS else TIME]
        return composed(use.offset, use.sql(), fields[use.word(field, tuple(fields))], (piece,))
    if piece.type not in _MOMENTS:
        raise use.fault(
            f"takes a part of a time or of an interval, not of {comparisons.name(piece.type)}",
            cast_hint(piece, "timestamp"),
            piece,
        )
    if (field.constant or "").lower() == "epoch":
        raise use.fault("does not know 'epoch'", f"write unix_timestamp({piece.sql}), or unix_millis({piece.sql})", field)
    word = use.word(field, (*sorted(_FIELDS), *_SECONDS))
    return composed(use.offset, use.sql(), Decimal(8, 6) if word in _SECONDS else INT, (piece,))


_SECONDS = ("second", "s", "sec", "seconds", "secs")


_FIELDS = words("""
    year y years yr yrs yearofweek quarter qtr month mon mons months week w weeks day d days dayofweek dow dayofweek_iso
    dow_iso doy hour h hours hr hrs minute m min mins minutes
""")


_OF_INTERVALS: Mapping[Type, Mapping[str, Type]] = {
    MONTHS: {"year": INT, "month": TINYINT},
    TIME: {"day": INT, "hour": TINYINT, "minute": TINYINT, "second": Decimal(8, 6)},
}


def moved(use: Use) -> Piece:
    """Returns `timestampadd(day, 1, at)` or `timestampdiff(day, a, b)`."""
    unit, first_value, second_value = use.some(3, 3)
    word = use.word(unit, UNITS)
    if not is_integral(first_value.type) if use.name == "timestampadd" else first_value.type not in _MOMENTS:
        raise use.fault(
            f"takes a unit, then {'a number' if use.name == 'timestampadd' else 'two times'}", f"{use.name}(day, …)", first_value
        )
    if second_value.type not in _MOMENTS:
        raise use.fault(
            f"takes a time here, not {comparisons.name(second_value.type)}", cast_hint(second_value, "timestamp"), second_value
        )
    result_type = second_value.type if second_value.type == TIMESTAMP_NTZ else TIMESTAMP
    sql = f"{use.name}({word.upper()}, {first_value.sql}, {second_value.sql})"
    return composed(use.offset, sql, result_type if use.name == "timestampadd" else BIGINT, (first_value, second_value))


_MOMENTS = (*types.TIMES, STRING)


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    **dict.fromkeys(("date_part", "datepart"), part),
    **dict.fromkeys(("timestampadd", "timestampdiff"), moved),
}
