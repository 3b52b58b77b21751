"""Check `generate:` at planning time: whether a column's values can be generated for its type, and whether a pattern is supported.

*Limit*: a pattern consists of literals, classes such as `[a-z0-9_]`, and `\\d`, each with `?`, `{n}` or `{n,m}` after it if needed.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timezone
from decimal import Decimal as Number
from typing import Any

from framework.base import iso_times
from framework.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGRALS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Struct,
    Type,
    is_fractional,
    is_integral,
    is_numeric,
)
from framework.plan import Generated

LONGEST = 1000  # characters of a generated text
LONGEST_PATTERN = 5000
PRINTED = 100  # characters of a pattern in a message
_ATOM = re.compile(r"\[(?P<set>(?:\\.|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<plain>[^\[\](){}*+?.|^$\\])", re.DOTALL)
_TIMES = re.compile(r"(?P<maybe>\?)|\{(?P<least>\d{1,4})(?:,(?P<most>\d{1,4}))?\}")
_ADVICE = {
    "*": "write a limit: `{0,9}`",
    "+": "write a limit: `{1,9}`",
    "?": "write it after a character or a class, once",
    "{": "write `{n}` or `{n,m}` after a character or a class, once; `\\{` for a brace",
    ".": "write a class such as `[a-z]`, or `\\.` for a dot",
    "(": "there are no groups: write the texts as `one_of`, or `\\(` for a bracket",
    "|": "there are no alternatives: write the texts as `one_of`",
    "^": "leave it out: the pattern is always the whole text",
    "$": "leave it out: the pattern is always the whole text",
    "[": "end the class with `]`, or write `\\[` for a bracket",
}


@dataclass(frozen=True)
class PatternPart:
    """One part of a pattern: any of these characters, repeated `least` to `most` times."""

    characters: str
    least: int
    most: int


class Unsuited(ValueError):
    """Raised for a column whose values cannot be generated, with a hint."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def parts(pattern: str) -> tuple[PatternPart, ...]:
    """The parts of a pattern. Raises Unsuited for an unsupported pattern."""
    pattern_parts = tuple(_parts(pattern)) if len(pattern) <= LONGEST_PATTERN else ()
    if len(pattern) > LONGEST_PATTERN or sum(part.most for part in pattern_parts) > LONGEST:
        raise _bad_pattern(pattern, f"can be longer than {LONGEST} characters", "repeat less often")
    return pattern_parts


def check(name: str, type_: Type, way: Generated) -> None:
    """Raise Unsuited if values of this type cannot be generated this way."""
    if isinstance(type_, Struct):
        field = f"{name}.{type_.fields[0].name}"
        raise Unsuited("cannot-generate", f"`{name}` is a struct", f"generate each of its fields, such as `{field}`")
    if way.one_of is not None:
        for text in way.one_of:
            _check_constant(name, type_, text)
    elif way.between is not None:
        _check_between(name, type_, *way.between)
    elif way.pattern is not None:
        parts(way.pattern)
        if type_ != STRING:
            raise _cannot(name, type_, "pattern", "use `one_of`" + (" or `between`" if is_numeric(type_) else ""))
    elif type_ not in (STRING, TIMESTAMP, TIMESTAMP_NTZ, DATE, BIGINT):
        raise _cannot(
            name, type_, "last" if way.last else "now", "a time is a timestamp, a date, text, or a bigint of milliseconds"
        )


def constant(type_: Type, text: str) -> Any:
    """The value of a text of `one_of`. Raises ValueError if the text is not of the type."""
    if is_integral(type_):
        return _within(type_, int(text))
    if is_fractional(type_) and math.isfinite(float(text)):
        if type_ == FLOAT:
            struct.pack("<f", float(text))  # raises where it is too large
        return float(text)
    if isinstance(type_, Decimal) and Number(text).is_finite():
        return _within(type_, Number(text))
    if type_ == BOOLEAN:
        return {"true": True, "false": False}[text]
    if type_ == DATE:
        return date.fromisoformat(text).isoformat()
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        return _moment(type_, text)
    if type_ != STRING:
        raise ValueError
    return text


def _moment(type_: Type, text: str) -> str:
    """Returns a time as messages have it, however the spec writes it."""
    moment = iso_times.read(text)
    if type_ == TIMESTAMP_NTZ:
        if moment.tzinfo:
            raise ValueError
        return moment.isoformat()
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _parts(pattern: str) -> Iterator[PatternPart]:
    index = 0
    while index < len(pattern):
        atom = _ATOM.match(pattern, index)
        if atom is None:
            hint = _ADVICE.get(pattern[index], f"write `\\{pattern[index]}`")
            raise _bad_pattern(pattern, f"has `{pattern[index]}` at character {index + 1}", hint)
        times = _TIMES.match(pattern, atom.end())
        minimum = maximum = 1
        if times is not None:
            minimum, maximum = (0, 1) if times["maybe"] else (int(times["least"]), int(times["most"] or times["least"]))
        if minimum > maximum:
            raise _bad_pattern(
                pattern, f"repeats at least {minimum} and at most {maximum} times", "write the smaller number first"
            )
        yield PatternPart(_characters(pattern, atom), minimum, maximum)
        index = (times or atom).end()


def _characters(pattern: str, atom: re.Match[str]) -> str:
    if atom["set"] is None:
        return atom["plain"] or _escaped(pattern, atom["escaped"])
    if not atom["set"] or atom["set"].startswith("^"):
        raise _bad_pattern(pattern, f"has the class `{atom[0]}`", "name the characters that may stand there, such as `[a-z]`")
    characters = ""
    for first_text, last_text in re.findall(r"(\\.|.)(?:-(\\.|[^\\]))?", atom["set"], re.DOTALL):
        start, end = (
            _escaped(pattern, text[1:]) if text.startswith("\\") else text for text in (first_text, last_text or first_text)
        )
        if last_text and not (len(start) == len(end) == 1 and start <= end and end.isascii()):
            raise _bad_pattern(
                pattern, f"has the range `{first_text}-{last_text}`", "a range goes up, from one ASCII character to another"
            )
        characters += "".join(map(chr, range(ord(start), ord(end) + 1))) if last_text else start
    return "".join(dict.fromkeys(characters))


def _escaped(pattern: str, character: str) -> str:
    if character == "d":
        return "0123456789"
    if character.isalnum():
        raise _bad_pattern(pattern, f"has `\\{character}`", "write a class such as `[A-Za-z0-9_]`")
    return character


def _check_constant(name: str, type_: Type, text: str) -> None:
    try:
        constant(type_, text)
    except (ValueError, ArithmeticError, KeyError):
        hint = f"write only values that are {type_}"
        raise Unsuited("cannot-generate", f"`{text}` is not of the type of `{name}`, {type_}", hint) from None


def _check_between(name: str, type_: Type, low: float, high: float) -> None:
    if not (is_numeric(type_) or type_ == STRING):
        raise _cannot(name, type_, "between", "use `one_of`" + (" or `now`" if type_ in (TIMESTAMP, DATE) else ""))
    for bound in (low, high):
        _check_constant(name, type_, str(bound))


def _within(type_: Type, value: Any) -> Any:
    if isinstance(type_, Decimal):
        places = -int(value.as_tuple().exponent)
        fits = places <= type_.scale and value.copy_abs() < Number(10) ** (type_.precision - type_.scale)
    else:
        bits = 8 << INTEGRALS.index(type_)
        fits = -(1 << bits - 1) <= value < 1 << bits - 1
    if not fits:
        raise ValueError
    return value


def _cannot(name: str, type_: Type, way: str, hint: str) -> Unsuited:
    return Unsuited("cannot-generate", f"`{name}` is {type_}, and `{way}` cannot generate {type_}", hint)


def _bad_pattern(pattern: str, fault: str, hint: str) -> Unsuited:
    text = pattern if len(pattern) <= PRINTED else pattern[: PRINTED - 1] + "…"
    return Unsuited("bad-pattern", f"the pattern `{text}` {fault}, which is not supported", hint)
