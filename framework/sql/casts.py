"""Which type can be cast to which, and which casts can fail for a value."""

from __future__ import annotations

from framework.sql.faults import refused
from framework.sql.pieces import NULL, Piece, as_timestamp, strict
from framework.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGRALS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Atom,
    Decimal,
    Type,
    is_fractional,
    is_integral,
    is_numeric,
)

_TIMES: tuple[Type, ...] = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def cast(piece: Piece, type: Type, tries: bool, offset: int) -> Piece:
    """`cast`, or `try_cast` which gives null instead of an error."""
    source = piece.type
    if source == VOID:
        if not isinstance(type, Atom | Decimal):
            raise refused(offset, "sql-type", f"NULL cannot be cast to {type} here", "cast it to a type without parts")
        return strict(offset, f"cast({piece.sql} AS {type.sql})", type, (piece,))
    if not _allowed(source, type):
        raise refused(offset, "sql-type", f"{source} cannot be cast to {type}", _way(source, type))
    if source == DATE and type in (TIMESTAMP, TIMESTAMP_NTZ):
        whole = as_timestamp(piece)
        sql = whole.sql if type == TIMESTAMP else f"cast({whole.sql} AS TIMESTAMP_NTZ)"
        return strict(offset, sql, type, (piece if tries else whole,))
    if _always(source, type):
        return strict(offset, f"cast({piece.sql} AS {type.sql})", type, (piece,))
    sql = f"CASE WHEN {piece.sql} RLIKE {DIGITS} THEN {piece.sql} END" if _runs_away(piece, type) else piece.sql
    return strict(offset, f"try_cast({sql} AS {type.sql})", type, (piece,), None if tries else NULL)


DIGITS = r"r'^[^eE]{0,1000}([eE][-+]?[0-9]{1,4}\s*)?$'"
"""Text that Java parses as a decimal quickly. For 1e-1000000000 Java computes for hours; for 1e2147483647 even try_cast throws."""


def _runs_away(piece: Piece, type: Type) -> bool:
    short = piece.constant is not None and len(piece.constant) < 1000 and "e" not in piece.constant.lower()
    return piece.type == STRING and isinstance(type, Decimal) and not short


def _allowed(source: Type, type: Type) -> bool:
    if source == type:
        return True
    if not isinstance(type, Atom | Decimal) or not isinstance(source, Atom | Decimal):
        return False
    if source == STRING or type == STRING:
        return True
    if is_numeric(source):
        return is_numeric(type) or type == BOOLEAN or (type == TIMESTAMP and not isinstance(source, Decimal))
    if source == BOOLEAN:
        return is_numeric(type)
    if source == TIMESTAMP:
        return is_numeric(type) or type in _TIMES
    return source in _TIMES and type in _TIMES


def _always(source: Type, type: Type) -> bool:
    """Whether every value of the one type has one in the other."""
    if source == type or (type in (STRING, BOOLEAN) and source != STRING):
        return True
    if is_integral(source) and is_integral(type):
        return INTEGRALS.index(source) <= INTEGRALS.index(type)
    if is_fractional(type):
        return source != STRING
    if source == STRING:
        return type == BINARY
    if source == BOOLEAN:
        return is_integral(type)
    return type in _TIMES and not is_fractional(source)


def _way(source: Type, type: Type) -> str:
    if source == BINARY:
        return "cast it to string first"
    if type == DATE and is_numeric(source):
        return "use date_from_unix_date(days), or timestamp_seconds(seconds)"
    if type == TIMESTAMP:
        return "use timestamp_seconds(cast(x as bigint)), or timestamp_millis"
    if source == DATE and is_numeric(type):
        return "use unix_date(x), or unix_timestamp(x)"
    return "name the part that you want: a field, an item"
