"""Literals of intervals: `interval 90 minutes`, `interval '1 day 2 hours'`, `interval '1-6' year to month`.

Spark has two kinds: months and years, or days down to seconds. One literal is of one kind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from framework.sql.faults import ExpressionError, refused
from framework.sql.tree import Literal, Node

if TYPE_CHECKING:
    from framework.sql.grammar import Parser

MONTHS, TIME = "months", "time"
_UNITS = {
    **dict.fromkeys(("year", "quarter", "month"), MONTHS),
    **dict.fromkeys(("week", "day", "hour", "minute", "second", "millisecond", "microsecond"), TIME),
}
_SCALE = {
    "quarter": (3, "month"),
    "week": (7, "day"),
    "millisecond": (1000, "microsecond"),
}  # Spark has no such unit in a literal
_SECONDS = {"year": 31_536_000, "month": 2_419_200, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1, "microsecond": 1e-6}
_PART = re.compile(r"\s*([-+]?)\s*(\d{1,9})(\.\d{1,6})?\s*([A-Za-z]+)\s*", re.ASCII)
_MOST = {"year": 178_956_970, "month": 2_147_483_647, "day": 106_751_991}  # the most of which Spark can make an interval
_HOURS, _SIXTY = r"([01]?\d|2[0-3])", r"[0-5]?\d"
_RANGES = {
    ("year", "month"): r"[-+]?\d{1,8}-(0?\d|1[01])",
    ("day", "hour"): rf"[-+]?\d{{1,8}} {_HOURS}",
    ("day", "minute"): rf"[-+]?\d{{1,8}} {_HOURS}:{_SIXTY}",
    ("day", "second"): rf"[-+]?\d{{1,8}} {_HOURS}:{_SIXTY}:{_SIXTY}(\.\d{{1,6}})?",
    ("hour", "minute"): rf"[-+]?\d{{1,9}}:{_SIXTY}",
    ("hour", "second"): rf"[-+]?\d{{1,9}}:{_SIXTY}:{_SIXTY}(\.\d{{1,6}})?",
    ("minute", "second"): rf"[-+]?\d{{1,9}}:{_SIXTY}(\.\d{{1,6}})?",
}
_HINT = "write for example `interval 90 minutes`, `interval '1 day 2 hours'`, `interval '1-6' year to month`"


def read(parser: Parser) -> Node:
    offset = parser.take().offset
    sign = "-" if parser.skip("-") else ""
    token = parser.take()
    if token.kind == "string" and parser.next.word not in _UNITS and parser.next.word.removesuffix("s") not in _UNITS:
        return _literal(offset, _signed(sign, _parts(token.value, offset)), offset)
    if token.kind == "string" and parser.after.word == "to":
        start, end = parser.take().word, (parser.take(), parser.take())[1].word
        form = _RANGES.get((start, end))
        if form is None or not re.fullmatch(form, token.value, re.ASCII):
            raise _refused(offset)
        return Literal(offset, _UNITS[start], f"interval {sign}'{token.value}' {start} to {end}", f"{start} to {end}")
    parts = [_part(sign, token.value, parser.take().word, offset)]
    while parser.next.kind in ("number", "string") and parser.after.word.removesuffix("s") in _UNITS:
        parts.append(_part(sign, parser.take().value, parser.take().word, offset))
    return _literal(offset, parts, offset)


def seconds(text: str) -> float:
    """Returns the seconds of a literal's interval, 0 where it has no units; a month counts as the shortest one."""
    return abs(sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"'(-?[0-9.]+)' (\w+)", text)))


def _signed(sign: str, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"-{number}".removeprefix("--") if sign else number, unit) for number, unit in parts]


def _parts(text: str, offset: int) -> list[tuple[str, str]]:
    parts = []
    position = 0
    while match := _PART.match(text, position):
        parts.append(_part(match[1], match[2] + (match[3] or ""), match[4].lower(), offset))
        position = match.end()
    if not parts or position < len(text):
        raise _refused(offset)
    return parts


def _part(sign: str, number: str, word: str, offset: int) -> tuple[str, str]:
    """Returns a signed number and its unit."""
    unit = word.removesuffix("s") if word.removesuffix("s") in _UNITS else word
    negative = (sign == "-") != number.startswith("-")
    digits = number.lstrip("+-")
    if unit not in _UNITS or not re.fullmatch(r"\d{1,9}(\.\d{1,6})?" if unit == "second" else r"\d{1,9}", digits, re.ASCII):
        raise _refused(offset)
    scale, unit = _SCALE.get(unit, (1, unit))
    digits = str(int(digits) * scale) if scale > 1 else digits
    if int(digits.partition(".")[0]) > _MOST.get(unit, 10**10):
        raise _refused(offset)
    return f"{'-' if negative else ''}{digits}", unit


def _literal(offset: int, parts: list[tuple[str, str]], fault_offset: int) -> Literal:
    kinds = {_UNITS[unit] for _, unit in parts}
    if len(kinds) > 1 or len({unit for _, unit in parts}) < len(parts):
        hint = "add one after the other: `at + interval 1 month + interval 1 day`"
        raise refused(
            fault_offset, "sql-syntax", "an interval is of years and months, or of days and smaller units, each unit once", hint
        )
    text = " ".join(f"'{number}' {unit}" for number, unit in parts)
    return Literal(offset, kinds.pop(), f"interval {text}", text)


def _refused(offset: int) -> ExpressionError:
    return refused(offset, "sql-syntax", "this is not an interval", _HINT)
