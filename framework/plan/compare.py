"""What came of a test held against what it expects: rows that are missing, rows that nobody expects, and those that nearly fit.

Rows have no order. A row fits if the columns that are named do: of a struct only the fields that are named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from framework.plan.model import Column, Example
from framework.types import BIGINT, BINARY, INT, STRING, Array, Map, Struct, Type, is_fractional

Row = Mapping[str, Any]
_CLOSE = 1e-9  # relative difference of floats that are equal
_BAD: dict[str, Type] = {
    "code": STRING, "stage": STRING, "message": STRING, "item": STRING, "topic": STRING, "partition": INT, "offset": BIGINT,
    "key": BINARY, "value": BINARY,
}  # fmt: skip
_SHOWN_OF_BAD = ("code", "message")


@dataclass(frozen=True)
class Difference:
    """How the rows differ. `nearly` are pairs of an expected row and the row that fits it best, with the columns that do not."""

    noun: str
    expected: int
    came: int
    columns: tuple[str, ...]  # those that are shown
    nearly: tuple[tuple[Row, Row, tuple[str, ...]], ...]
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]


def differences(example: Example, columns: Sequence[Column], rows: Sequence[Row], bad: Sequence[Row]) -> tuple[Difference, ...]:
    """None where all is as the test expects."""
    found = []
    types = {column.name: column.type for column in columns}
    if example.expect is not None:
        own = [name for name in types if not name.startswith("_kafka_")]
        found.append(_difference("row", example.expect, rows, types, own))
    found.append(_difference("bad row", example.expect_bad, bad, _BAD, _SHOWN_OF_BAD))
    return tuple(each for each in found if each)


def _difference(
    noun: str, expected: Sequence[Row], rows: Sequence[Row], types: Mapping[str, Type], shown: Iterable[str]
) -> Difference | None:
    fits = [[not _unlike(want, row, types) for row in rows] for want in expected]
    pairs = _matching(fits, len(rows))
    missing = [at for at in range(len(expected)) if at not in pairs.values()]
    unexpected = [at for at in range(len(rows)) if at not in pairs]
    if not missing and not unexpected:
        return None
    nearly = []
    for want, row in _closest(missing, unexpected, lambda want, row: _unlike(expected[want], rows[row], types), expected):
        nearly.append((expected[want], rows[row], _unlike(expected[want], rows[row], types)))
        missing.remove(want)
        unexpected.remove(row)
    named = {name for want in expected for name in want}
    columns = tuple(name for name in types if name in named) or tuple(shown)
    if noun == "bad row":
        columns = tuple(name for name in types if name in named or name in shown)
    return Difference(
        noun, len(expected), len(rows), columns, tuple(nearly), tuple(expected[at] for at in missing),
        tuple(rows[at] for at in unexpected),
    )  # fmt: skip


def _matching(fits: Sequence[Sequence[bool]], rows: int) -> dict[int, int]:
    """The expected row of as many rows as can have one each: a row that several fit goes to whom no other is left."""
    taken: dict[int, int] = {}

    def give(want: int, seen: set[int]) -> bool:
        for row in range(rows):
            if fits[want][row] and row not in seen:
                seen.add(row)
                if row not in taken or give(taken[row], seen):
                    taken[row] = want
                    return True
        return False

    for want in range(len(fits)):
        give(want, set())
    return taken


def _closest(
    missing: Sequence[int], unexpected: Sequence[int], unlike: Callable[[int, int], tuple[str, ...]], expected: Sequence[Row]
) -> list[tuple[int, int]]:
    """Pairs that have most in common, the best first; of several rows one that has nothing in common is no pair."""
    lone = len(missing) == len(unexpected) == 1
    ranked = sorted(
        (len(wrong), want, row)
        for want in missing
        for row in unexpected
        if (wrong := unlike(want, row)) and (lone or len(wrong) < len(expected[want]))
    )
    found: list[tuple[int, int]] = []
    for _, want, row in ranked:
        if all(want != each[0] and row != each[1] for each in found):
            found.append((want, row))
    return found


def _unlike(want: Row, row: Row, types: Mapping[str, Type]) -> tuple[str, ...]:
    """The named columns that are not as expected."""
    return tuple(name for name, value in want.items() if not alike(value, row.get(name), types[name]))


def alike(want: Any, got: Any, type_: Type) -> bool:
    """Whether a value is the expected one; both are as `values.read` and the table give them."""
    if want is None or got is None:
        return want is got
    match type_:
        case Array():
            return len(want) == len(got) and all(alike(*pair, type_.element) for pair in zip(want, got, strict=True))
        case Map():
            there = dict(got)
            return want.keys() == there.keys() and all(alike(value, there[key], type_.value) for key, value in want.items())
        case Struct():
            types = {field.name: field.type for field in type_.fields}
            return all(alike(value, got.get(name), types[name]) for name, value in want.items())
    if is_fractional(type_):
        return bool(want == got or (math.isnan(want) and math.isnan(got)) or math.isclose(want, got, rel_tol=_CLOSE))
    return bool(want == got)


def lines(difference: Difference) -> list[str]:
    """A table of what differs. Below each row that nearly fits stands what of it does not."""
    rows: list[tuple[str, Row | None, tuple[str, ...]]] = []
    rows += [("differs", got, tuple(_said(want, got, name) for name in wrong)) for want, got, wrong in difference.nearly]
    rows += [("missing", want, ()) for want in difference.missing]
    rows += [("unexpected", got, ()) for got in difference.unexpected]
    table = [["", *difference.columns]]
    table += [[what, *(show(row[name]) if row and name in row else "" for name in difference.columns)] for what, row, _ in rows]
    widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
    laid = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    found = [f"{_counted(difference.expected, difference.noun)} expected, {difference.came:,} came", laid[0]]
    for line, (_, _, notes) in zip(laid[1:], rows, strict=True):
        found += [line, *(f"  {note}" for note in notes)]
    return found


def _said(want: Row, got: Row, name: str) -> str:
    return f"{name}: expected {show(want[name])}, got {show(got.get(name))}"


_LONGEST = 60  # characters of a value in a table


def show(value: Any) -> str:
    """A value as a spec writes it, on one line."""
    text = _shown(value)
    text = (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    )
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        zone = "Z" if value.tzinfo else ""
        return (value.astimezone(timezone.utc) if zone else value).replace(tzinfo=None).isoformat() + zone
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list) and value and all(isinstance(each, tuple) and len(each) == 2 for each in value):
        return _shown(dict(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return '""' if value == "" else str(value)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
