"""Literals: their types, and the check that dates and times exist."""

from __future__ import annotations

import datetime
import decimal
import re

from framework.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    MONTHS,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Decimal,
    Type,
)
from framework.sql.faults import refused
from framework.sql.pieces import Piece
from framework.sql.tree import Literal

_BITS: dict[Type, int] = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
_LARGEST: dict[Type, decimal.Decimal] = {
    FLOAT: decimal.Decimal("3.4028234663852886e38"),
    DOUBLE: decimal.Decimal("1.7976931348623157e308"),
}
_INTERVALS = {"months": MONTHS, "time": TIME}
_SUFFIXES: dict[str, Type] = {"y": TINYINT, "s": SMALLINT, "l": BIGINT}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LOOSE = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d{1,9})?)?)(?:.*[A-Z0-9])?)?)?)?", re.ASCII
)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(Z|[+-](?:(?:0\d|1[0-7]):[0-5]\d|18:00))?)?", re.ASCII
)


def literal(node: Literal) -> Piece:
    """Returns a literal with the type that Spark gives it."""
    if node.kind == "number":
        return Piece(node.text, number(node), offset=node.offset, constant=node.value)
    if node.kind == "string":
        return Piece(node.text, STRING, offset=node.offset, constant=node.value)
    if node.kind == "boolean":
        return Piece(node.text.upper(), BOOLEAN, offset=node.offset, constant=node.value)
    if node.kind == "null":
        return Piece("NULL", VOID, offset=node.offset)
    if node.kind in _INTERVALS:
        days = re.fullmatch(r"'[^']*' day", node.value)
        return Piece(f"({node.text})", DAYS if days else _INTERVALS[node.kind], offset=node.offset, constant=node.value)
    # Dates and times are written anew: their text may have been a raw string, and Spark has no raw dates.
    sql = f"{node.kind}'{node.value}'"
    if node.kind == "date":
        if not (_DATE.fullmatch(node.value) and real(node.value)):
            raise refused(
                node.offset, "sql-type", f"'{node.value}' is not a date", "write a day that exists, such as `date'2026-01-31'`"
            )
        return Piece(sql, DATE, offset=node.offset, constant=node.value)
    match = _TIME.fullmatch(node.value)
    has_zone = match is not None and match[3] is not None
    if match is None or not real(match[1]) or not clock(match[2]) or (has_zone and node.kind == "timestamp_ntz"):
        raise refused(
            node.offset,
            "sql-type",
            f"'{node.value}' is not a {node.kind}",
            "write a time that exists, such as `timestamp'2026-01-31 10:00:00'` (UTC) or `timestamp'2026-01-31 10:00:00+02:00'`",
        )
    return Piece(sql, TIMESTAMP if node.kind == "timestamp" else TIMESTAMP_NTZ, offset=node.offset, constant=node.value)


def moment(text: str) -> bool:
    """Whether Spark reads a text as a date or a time; it also reads `2026-1-5` and `2026-01`."""
    match = _LOOSE.fullmatch(text)
    if match is None:
        return False
    padded = f"{match[1]}-{int(match[2] or 1):02}-{int(match[3] or 1):02}"
    return real(padded) and clock(match[4])


def real(date: str) -> bool:
    try:
        return datetime.date.fromisoformat(date).year > 0
    except ValueError:
        return False


def clock(time: str | None) -> bool:
    hours, minutes, seconds = (*(time or "0:0").split(":"), "0")[:3]
    return int(hours) < 24 and int(minutes) < 60 and float(seconds) < 60


def whole(piece: Piece) -> int | None:
    """Returns the value of an integer literal; None for everything else."""
    if piece.constant is None or piece.type not in _BITS:
        return None
    return int(piece.constant.rstrip("lLsSyY"))


def number(node: Literal) -> Type:
    text = node.value.lower()
    if text.endswith("bd"):
        return _decimal(node, text[:-2])
    if text[-1] in "df":
        return _approximate(node, text[:-1], DOUBLE if text[-1] == "d" else FLOAT)
    if text[-1] in _SUFFIXES:
        type = _SUFFIXES[text[-1]]
        if not text[:-1].lstrip("-").isdigit() or not _fits(int(text[:-1]), type):
            raise refused(node.offset, "sql-type", f"{node.text} is not a {type}", "leave the last letter out")
        return type
    if "e" in text:
        return _approximate(node, text, DOUBLE)
    if "." in text:
        return _decimal(node, text)
    return next((type for type in (INT, BIGINT) if len(text) < 25 and _fits(int(text), type)), None) or _decimal(node, text)


def _fits(value: int, type: Type) -> bool:
    half = 1 << (_BITS[type] - 1)
    return -half <= value < half


def _approximate(node: Literal, text: str, type: Type) -> Type:
    """Returns the type of a float or double. Spark refuses one that is too large, and an exponent that is too long."""
    if len(text.partition("e")[2].lstrip("+-")) > 4 or abs(decimal.Decimal(text)) > _LARGEST[type]:
        raise refused(node.offset, "sql-type", f"{node.text[:30]} is not a {type}", "write a number from -1e308 to 1e308")
    return type


def _decimal(node: Literal, text: str) -> Type:
    try:
        _, digits, exponent = decimal.Decimal(text).as_tuple()
    except decimal.InvalidOperation:
        raise refused(node.offset, "sql-type", f"{node.text} is not a number", "write for example `12.50`") from None
    assert isinstance(exponent, int), "the tokens hold neither NaN nor infinity"
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if precision > 38:
        raise refused(node.offset, "sql-type", f"{node.text[:30]} has more than 38 digits", "write it with an exponent: `1.5e60`")
    return Decimal(precision, scale)


def exact(piece: Piece) -> Type:
    """Returns the type of an integer literal in an operation with a decimal: just its digits. Spark does not do this for tinyints."""
    value = whole(piece)
    return piece.type if value is None or piece.type == TINYINT else Decimal(len(str(abs(value))), 0)
