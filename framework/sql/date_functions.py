"""Functions of dates and timestamps that take a pattern or a unit, or that fail outside Spark's calendar."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.sql import patterns
from framework.sql.arguments import Use
from framework.sql.pieces import NULL, Piece, strict
from framework.types import BIGINT, DATE, STRING, TIMESTAMP, Type

_UNITS = (
    "year",
    "yyyy",
    "yy",
    "quarter",
    "month",
    "mon",
    "mm",
    "week",
    "day",
    "dd",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
_DATE_UNITS = ("year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week")
_SECONDS, _MILLIS = 9223372036854, 9223372036854775


def date_trunc(use: Use) -> Piece:
    unit, piece = use.take("string", "timestamp")
    use.word(unit, _UNITS)
    # The first year of Spark's calendar is not complete: truncating to its start throws.
    late = f"({piece.sql} >= timestamp'-290307-01-01 00:00:00')"
    return strict(use.offset, use.sql(unit, f"CASE WHEN {late} THEN {piece.sql} END"), TIMESTAMP, (piece,), NULL)


def trunc(use: Use) -> Piece:
    piece, unit = use.take("date", "string")
    use.word(unit, _DATE_UNITS)
    if piece.type != DATE:
        # A guard here would make Spark compare the timestamp with a date that no timestamp reaches, and throw.
        return strict(use.offset, use.sql(piece, unit), DATE, (piece,))
    late = f"({piece.sql} >= date'-5877640-01-01')"
    return strict(use.offset, use.sql(f"CASE WHEN {late} THEN {piece.sql} END", unit), DATE, (piece,), NULL)


def to_date(use: Use) -> Piece:
    return _read(use, DATE)


def to_timestamp(use: Use) -> Piece:
    return _read(use, TIMESTAMP)


def _read(use: Use, type: Type) -> Piece:
    tries = None if use.name.startswith("try_") else NULL
    piece, *pattern = use.take("any", "string?")
    if piece.type in (DATE, TIMESTAMP) and not pattern and not use.name.startswith("try_"):
        piece = use.fit(piece, str(type))
        return strict(use.offset, f"cast({piece.sql} AS {type})", type, (piece,))
    piece = use.fit(piece, "string")
    if not pattern:
        return strict(use.offset, f"try_cast({piece.sql} AS {type})", type, (piece,), tries)
    patterns.dates(pattern[0], parsing=True)
    return strict(use.offset, f"try_to_{type}({piece.sql}, {pattern[0].sql})", type, (piece,), tries)


def date_format(use: Use) -> Piece:
    piece, pattern = use.take("timestamp", "string")
    patterns.dates(pattern, parsing=False)
    return strict(use.offset, use.sql(piece, pattern), STRING, (piece,))


def from_unixtime(use: Use) -> Piece:
    piece, *pattern = use.take("bigint", "string?")
    if pattern:
        patterns.dates(pattern[0], parsing=False)
    return strict(use.offset, use.sql(piece, *pattern), STRING, (piece,))


def timestamp_of(use: Use) -> Piece:
    """`timestamp_millis`, `timestamp_seconds`"""
    (piece,) = use.take("bigint")
    most = _SECONDS if use.name == "timestamp_seconds" else _MILLIS
    return strict(
        use.offset,
        use.sql(f"CASE WHEN {piece.sql} >= -{most} AND {piece.sql} <= {most} THEN {piece.sql} END"),
        TIMESTAMP,
        (piece,),
        NULL,
    )


def unix_of(use: Use) -> Piece:
    """`unix_seconds`, `unix_millis`, `unix_micros`"""
    (piece,) = use.take("moment")
    return strict(use.offset, use.sql(piece), BIGINT, (piece,))


def add_months(use: Use) -> Piece:
    piece, months = use.take("date", "int")
    moved = f"try_add(cast({piece.sql} AS DATE), make_ym_interval(0, {months.sql}))"
    return strict(use.offset, moved, DATE, (piece, months), NULL)


def make_date(use: Use) -> Piece:
    year, month, day = pieces = use.take("int", "int", "int")
    leap = f"(({year.sql} % 4 = 0 AND {year.sql} % 100 <> 0) OR {year.sql} % 400 = 0)"
    last = f"CASE WHEN {month.sql} IN (4, 6, 9, 11) THEN 30 WHEN {month.sql} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    in_calendar = f"{year.sql} >= -5877640 AND {year.sql} <= 5881579 AND {month.sql} >= 1 AND {month.sql} <= 12"
    real = f"{in_calendar} AND {day.sql} >= 1 AND {day.sql} <= {last}"
    return strict(use.offset, f"CASE WHEN {real} THEN {use.sql(*pieces)} END", DATE, pieces, NULL)


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    "add_months": add_months,
    "date_format": date_format,
    "date_trunc": date_trunc,
    "from_unixtime": from_unixtime,
    "make_date": make_date,
    "timestamp_millis": timestamp_of,
    "timestamp_seconds": timestamp_of,
    "to_date": to_date,
    "to_timestamp": to_timestamp,
    "trunc": trunc,
    "try_to_date": to_date,
    "try_to_timestamp": to_timestamp,
    "unix_micros": unix_of,
    "unix_millis": unix_of,
    "unix_seconds": unix_of,
}
