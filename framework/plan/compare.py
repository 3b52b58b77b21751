"""Compare a test's rows with the expected rows: missing rows, unexpected rows, and pairs that differ in some columns.

The order of rows does not matter. A row fits if its named columns fit. In a struct, only the named fields are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from framework.base import iso_times
from framework.base.amounts import counted
from framework.base.errors import visible
from framework.base.types import BIGINT, BINARY, INT, STRING, Array, Map, Struct, Type, is_fractional
from framework.plan import Column, Message, SpecTest

Row = Mapping[str, Any]
_CLOSE = 1e-9  # relative difference up to which floats are equal
_BAD: dict[str, Type] = {
    "code": STRING, "stage": STRING, "message": STRING, "item": STRING, "topic": STRING, "partition": INT, "offset": BIGINT,
    "key": BINARY, "value": BINARY,
}  # fmt: skip
_SHOWN_OF_BAD = ("code", "message")
_MAX_PAIRS = 20  # pairs of a difference that are shown


class TimeBeyondRange(str):
    """A time outside of Python's range, as text. It equals no expected time."""

    __slots__ = ()


@dataclass(frozen=True)
class Pair:
    """An expected row and the row closest to it, with the columns that differ. Either row may be missing."""

    want: Row | None
    got: Row | None
    unequal: tuple[str, ...] = ()
    message: int | None = None  # the number of the row's message in the test, if the row has its offset


@dataclass(frozen=True, kw_only=True)
class Difference:
    noun: str
    expected: int
    actual: int
    columns: tuple[str, ...]  # the columns to print
    pairs: tuple[Pair, ...]


def differences(example: SpecTest, columns: Sequence[Column], rows: Sequence[Row], bad: Sequence[Row]) -> tuple[Difference, ...]:
    """The differences between a test's rows and its expectations; none for a test that passes."""
    found_differences = []
    types = {column.name: column.type for column in columns}
    if example.expect is not None:
        own_columns = [name for name in types if not name.startswith("_kafka_")]
        found_differences.append(_difference("row", example, example.expect, rows, types, own_columns))
    found_differences.append(_difference("bad row", example, example.expect_bad, bad, _BAD, _SHOWN_OF_BAD))
    return tuple(difference for difference in found_differences if difference)


def _difference(
    noun: str,
    example: SpecTest,
    expected: Sequence[Row],
    rows: Sequence[Row],
    types: Mapping[str, Type],
    default_columns: Sequence[str],
) -> Difference | None:
    fits = [[not _unlike(want, row, types) for row in rows] for want in expected]
    matched = _matching(fits, len(rows))
    missing_indexes = [index for index in range(len(expected)) if index not in matched.values()]
    unexpected_indexes = [index for index in range(len(rows)) if index not in matched]
    if not missing_indexes and not unexpected_indexes:
        return None
    pairs = []
    for want, row in _closest(
        missing_indexes, unexpected_indexes, lambda want, row: _unlike(expected[want], rows[row], types), expected
    ):
        unequal = _unlike(expected[want], rows[row], types)
        pairs.append(Pair(expected[want], rows[row], unequal, _message(example, rows[row])))
        missing_indexes.remove(want)
        unexpected_indexes.remove(row)
    pairs += [Pair(expected[index], None) for index in missing_indexes]
    pairs += [Pair(None, rows[index], (), _message(example, rows[index])) for index in unexpected_indexes]
    named_columns = {name for want in expected for name in want}
    shown_columns = default_columns if noun == "bad row" or not named_columns else ()
    columns = tuple(name for name in types if name in named_columns or name in shown_columns)
    return Difference(noun=noun, expected=len(expected), actual=len(rows), columns=columns, pairs=tuple(pairs))


def _message(example: SpecTest, row: Row) -> int | None:
    """The number, from 1, of the message of a row or bad row, if the row has its offset."""
    place = [row.get(name, row.get(f"_kafka_{name}")) for name in ("partition", "offset")]
    topic = row.get("_kafka_topic", row.get("topic") if "code" in row else None)
    for number, message in enumerate(example.given, 1):
        if isinstance(message, Message) and place == [message.partition, message.offset] and topic in (None, message.topic):
            return number
    return None


def _matching(fits: Sequence[Sequence[bool]], rows: int) -> dict[int, int]:
    """The expected row of each row, with as many pairs as possible (a maximum matching)."""
    matches: dict[int, int] = {}

    def give(want: int, tried: set[int]) -> bool:
        for row in range(rows):
            if fits[want][row] and row not in tried:
                tried.add(row)
                if row not in matches or give(matches[row], tried):
                    matches[row] = want
                    return True
        return False

    for want in range(min(len(fits), rows)):  # rows in their order: the search is deep only where many differ
        if fits[want][want]:
            matches[want] = want
    for want in set(range(len(fits))).difference(matches.values()):
        give(want, set())
    return matches


def _closest(
    missing_indexes: Sequence[int],
    unexpected_indexes: Sequence[int],
    unlike: Callable[[int, int], tuple[str, ...]],
    expected: Sequence[Row],
) -> list[tuple[int, int]]:
    """Pairs with the fewest differing columns, the best first. Rows without a common column pair only if each is the only one left."""
    is_only_pair = len(missing_indexes) == len(unexpected_indexes) == 1
    ranked = sorted(
        (len(unequal), want, row)
        for want in missing_indexes
        for row in unexpected_indexes
        if (unequal := unlike(want, row)) and (is_only_pair or len(unequal) < len(expected[want]))
    )
    pairs: list[tuple[int, int]] = []
    for _, want, row in ranked:
        if all(want != pair[0] and row != pair[1] for pair in pairs):
            pairs.append((want, row))
    return pairs


def _unlike(want: Row, row: Row, types: Mapping[str, Type]) -> tuple[str, ...]:
    """The named columns that differ from the expected row."""
    return tuple(name for name, value in want.items() if not alike(value, row.get(name), types[name]))


def alike(want: Any, got: Any, type_: Type) -> bool:
    """Whether a value equals the expected one. The values come from `values.read` and from the table."""
    if want is None or got is None or isinstance(got, TimeBeyondRange):
        return want is got
    match type_:
        case Array():
            return len(want) == len(got) and all(alike(*pair, type_.element) for pair in zip(want, got, strict=True))
        case Map():
            got_map = dict(got)
            return want.keys() == got_map.keys() and all(alike(value, got_map[key], type_.value) for key, value in want.items())
        case Struct():
            types = {field.name: field.type for field in type_.fields}
            return all(alike(value, got.get(name), types[name]) for name, value in want.items())
    if is_fractional(type_):
        return bool(want == got or (math.isnan(want) and math.isnan(got)) or math.isclose(want, got, rel_tol=_CLOSE))
    return bool(want == got)


def lines(difference: Difference) -> list[str]:
    """A table of the differences. Below an expected row is the closest actual row, and below that are marks at differing columns."""
    table = [["", *difference.columns]]
    for pair in difference.pairs[:_MAX_PAIRS]:
        table += _laid(pair, difference.columns)
    widths = [max(len(line[index]) for line in table) for index in range(len(table[0]))]
    text_lines = [f"expected {counted(difference.expected, difference.noun)}, got {difference.actual:,}"]
    text_lines += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    if len(difference.pairs) > _MAX_PAIRS:
        text_lines.append(f"… and {len(difference.pairs) - _MAX_PAIRS:,} more")
    return text_lines


def _laid(pair: Pair, columns: Sequence[str]) -> list[list[str]]:
    """The lines of a pair: a label, then the text of each column."""
    message_suffix = "" if pair.message is None else f" of message {pair.message}"
    want, got = ({name: show(row[name]) for name in columns if name in row} for row in (pair.want or {}, pair.got or {}))
    if pair.want is None:
        return [[f"+ unexpected{',' if message_suffix else ''}{message_suffix}", *(got.get(name, "") for name in columns)]]
    if pair.got is None:
        return [["- missing", *(want.get(name, "") for name in columns)]]
    for name in pair.unequal:
        if name not in got:
            got[name] = show(None)
        want[name], got[name] = _around_difference(show(pair.want[name], None), show(pair.got.get(name), None))
    marks = {name: "^" * max(len(want[name]), len(got[name])) for name in pair.unequal}
    return [
        ["- expected", *(want.get(name, "") for name in columns)],
        [f"+ got{message_suffix and f',{message_suffix}'}", *(got.get(name, "") for name in columns)],
        ["", *(marks.get(name, "") for name in columns)],
    ]


def _around_difference(want: str, got: str) -> tuple[str, str]:
    """Two long texts, cut to start shortly before their first difference."""
    same_length = next(
        (index for index, pair in enumerate(zip(want, got, strict=False)) if pair[0] != pair[1]), min(len(want), len(got))
    )
    start = max(0, same_length - 10) if max(len(want), len(got)) > _LONGEST else 0
    return _cut(want, start), _cut(got, start)


def _cut(text: str, start: int = 0) -> str:
    text = f"…{text[start:]}" if start else text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_LONGEST = 60  # characters of a value in a table


def show(value: Any, longest: int | None = _LONGEST) -> str:
    """A value in a spec's syntax, on one line."""
    text = visible(_text(value))
    return text if longest is None else _cut(text)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return iso_times.text(value) if value.tzinfo else iso_times.text(value.replace(tzinfo=timezone.utc)).removesuffix("Z")
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return _text(dict(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_text, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    # Quote a text that looks like another value, or whose spaces would be invisible.
    plain = str(value) == str(value).strip() and value not in ("", "null", "true", "false")
    return str(value) if plain else f'"{value}"'
