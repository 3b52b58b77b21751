"""The casts that exist from type to type, and those that can fail for a value."""

from __future__ import annotations

from framework.base.types import (
    BOOLEAN,
    INTEGRALS,
    INTERVALS,
    STRING,
    TIMES,
    TIMESTAMP,
    VOID,
    Array,
    Atom,
    Decimal,
    Map,
    Struct,
    Type,
    is_fractional,
    is_integral,
    is_numeric,
)
from framework.sql.cast_remedies import suggest_for_cast
from framework.sql.faults import refused
from framework.sql.pieces import Piece, composed, guard


def cast(piece: Piece, type: Type, tries: bool, offset: int) -> Piece:
    """Returns a `cast`, or a `try_cast`, which gives null instead of an error."""
    source = piece.type
    if source == VOID and not isinstance(type, Atom | Decimal):
        raise refused(offset, "sql-type", f"NULL cannot be cast to {type} here", "cast it to a type without parts")
    if source != VOID and not _allowed(source, type):
        raise refused(offset, "sql-type", f"{source} cannot be cast to {type}", suggest_for_cast(piece, type))
    sql = _bounded(piece, tries) if _runs_away(piece, type) else piece.sql
    fails = not (tries or source == VOID or _always(source, type)) or (tries and source in TIMES)
    return composed(offset, f"{'try_cast' if tries else 'cast'}({sql} AS {type.sql})", type, (piece,), fails)


ENDLESS = r"r'[eE][-+]?[0-9]{5}|[eE][-+]?[0-9]*[^\x00-\x7f]|^[^eE]{1000}'"
"""Text that Java would read as a decimal for hours, such as 1e-1000000000, or for which even try_cast throws, such as 1e2147483647. Java
also knows digits of other alphabets."""


def _bounded(piece: Piece, tries: bool) -> str:
    fits = f"NOT {piece.sql} RLIKE {ENDLESS}"
    return (
        f"CASE WHEN ({fits}) IS NOT FALSE THEN {piece.sql} END"
        if tries
        else guard(fits, piece.sql, "a number of too many digits")
    )


def _runs_away(piece: Piece, type: Type) -> bool:
    is_short = piece.constant is not None and len(piece.constant) < 1000 and "e" not in piece.constant.lower()
    return piece.type == STRING and isinstance(type, Decimal) and not is_short


def _allowed(source: Type, type: Type) -> bool:
    if source == type:
        return True
    match source, type:
        case Array(), Array():
            return _part(source.element, type.element)
        case Map(), Map():
            return _part(source.key, type.key) and _part(source.value, type.value)
        case Struct(), Struct() if len(source.fields) == len(type.fields):
            return all(
                _part(source_field.type, type_field.type)
                for source_field, type_field in zip(source.fields, type.fields, strict=True)
            )
    if type == STRING:
        return True
    if not isinstance(type, Atom | Decimal) or not isinstance(source, Atom | Decimal):
        return False
    if source == STRING:
        return True
    if source in INTERVALS.values():
        return is_integral(type) or isinstance(type, Decimal)
    if is_numeric(source):
        return is_numeric(type) or type == BOOLEAN or (type == TIMESTAMP and not isinstance(source, Decimal))
    if source == BOOLEAN:
        return is_numeric(type)
    if source == TIMESTAMP:
        return is_numeric(type) or type in TIMES
    return source in TIMES and type in TIMES


def _part(source: Type, type: Type) -> bool:
    """Whether a part of a list, map or struct can be cast. A text in them can be 1e1000000000, which Java computes for hours; outside of
    them texts are checked."""
    return _allowed(source, type) and not (source == STRING and isinstance(type, Decimal))


def _always(source: Type, type: Type) -> bool:
    """Whether every value of `source` surely has a value in `type`."""
    if source == type or type == STRING:
        return True
    if is_integral(source) and is_integral(type):
        return INTEGRALS.index(source) <= INTEGRALS.index(type)
    return is_fractional(type) and is_numeric(source)
