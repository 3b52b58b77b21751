"""Columns inferred from a sample's objects: a type that takes every value, and remarks for a person.

*Guarantee* A message of the sample that is one JSON object is no bad row with these columns. No column is required: a sample cannot tell
that no message lacks it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Array, Field, Struct, Type, folded
from framework.language.scalars import read_time

_DEEPEST = 12  # levels of objects and lists in a type; below that there is text
_WIDEST = 200  # fields of one object in a type
_EPOCH = range(946_684_800_000, 4_102_444_800_000)  # milliseconds of the years 2000 to 2099
_A_TIME = re.compile(r"(^|_)(at|ts|time|timestamp|date|datetime|millis|ms|epoch)$|(time|timestamp|millis)$", re.IGNORECASE)
_A_TIME_IN_CAMELS = re.compile(r"[a-z0-9](At|Ts|Date|Ms)$")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-](0\d|1[0-7]):\d\d)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ATOMS: dict[str, Type] = {"boolean": BOOLEAN, "whole number": BIGINT, "number": DOUBLE, "time": TIMESTAMP, "date": DATE}
# A name that a struct's field can have without quotes in SQL.
_FIELD = re.compile(r"""[^\s.,;:`'"(){}\[\]=<>$#]{1,255}""")


@dataclass(frozen=True, kw_only=True)
class GuessedColumn:
    """A column of a topic, as a spec has it."""

    name: str
    type: Type
    format: str | None
    remarks: tuple[str, ...]  # on the values in the sample


def columns(objects: Sequence[Mapping[str, Any]]) -> tuple[GuessedColumn, ...]:
    """A column for each field, in the order of their first values."""
    names = dict.fromkeys(name for json_object in objects for name in json_object)
    return tuple(
        _column(name, [json_object[name] for json_object in objects if name in json_object], len(objects)) for name in names
    )


def _column(name: str, values: Sequence[Any], message_count: int) -> GuessedColumn:
    type_, remarks = _type(values)
    missing_count, null_count = message_count - len(values), sum(value is None for value in values)
    gap_remarks = (
        [f"{missing_count:,} of {message_count:,} messages lack{'s' * (missing_count == 1)} it"] if missing_count else []
    )
    gap_remarks += [f"null in {null_count:,} of {message_count:,}"] if null_count and null_count < len(values) else []
    format_ = None
    if type_ == BIGINT and _is_time(name) and all(value in _EPOCH for value in values if value is not None):
        type_, format_ = TIMESTAMP, "epoch_millis"
    return GuessedColumn(name=name, type=type_, format=format_, remarks=(*gap_remarks, *remarks))


def _is_time(name: str) -> bool:
    return bool(_A_TIME.search(name) or _A_TIME_IN_CAMELS.search(name))


def _type(values: Sequence[Any], depth: int = 1) -> tuple[Type, tuple[str, ...]]:
    """The narrowest type that takes all of the values; text takes any."""
    kind_counts = Counter(_kind(value) for value in values if value is not None)
    kinds_of_values = set(kind_counts)
    if not kinds_of_values:
        return STRING, (f"always null, in {len(values):,}",) if values else ("always an empty list",)
    if kinds_of_values == {"object"}:
        return _struct(values, depth)
    if kinds_of_values == {"list"}:
        return _array(values, depth)
    if kinds_of_values <= {"text", "time", "date"}:
        if kinds_of_values == {"time"}:
            return TIMESTAMP, ("some have no zone: read as UTC",) if any(map(_no_zone, values)) else ()
        return (DATE, ()) if kinds_of_values == {"date"} else (STRING, ())
    if kinds_of_values <= {"whole number", "huge whole number", "number"} and "number" in kinds_of_values:
        return DOUBLE, ()
    if len(kinds_of_values) == 1 and kinds_of_values <= _ATOMS.keys():
        return _ATOMS[kinds_of_values.pop()], ()
    if kinds_of_values == {"huge whole number"} or kinds_of_values == {"huge whole number", "whole number"}:
        return STRING, ("whole numbers, some beyond bigint",)
    mix = ", ".join(f"{kind} in {count:,}" for kind, count in kind_counts.most_common())
    return STRING, (mix if len(kinds_of_values) == 1 else f"a mix: {mix}",)


def _struct(values: Sequence[Any], depth: int) -> tuple[Type, tuple[str, ...]]:
    objects = [value for value in values if value is not None]
    names = list(dict.fromkeys(name for json_object in objects for name in json_object))
    field_names = [name for index, name in enumerate(names) if _can_be_a_field(name, names[:index])]
    dropped_count = sum(name not in field_names for name in names)
    remarks: tuple[str, ...] = (
        (f"{dropped_count:,} of its fields left out: names that no field can have",) if dropped_count else ()
    )
    if not names:
        return STRING, ("always an empty object",)
    if not field_names or depth >= _DEEPEST or len(field_names) > _WIDEST:
        why = f"objects of {len(field_names):,} fields" if len(field_names) > _WIDEST else "objects that no struct can be"
        return STRING, (f"{why}: kept as JSON text",)
    fields = []
    for name in field_names:
        type_, inner_remarks = _type([json_object[name] for json_object in objects if name in json_object], depth + 1)
        fields.append(Field(name, type_))
        remarks += tuple(f"{name}: {remark}" for remark in inner_remarks)
    return Struct(tuple(fields)), remarks


def _array(values: Sequence[Any], depth: int) -> tuple[Type, tuple[str, ...]]:
    if depth >= _DEEPEST:
        return STRING, ("nested too deep: kept as JSON text",)
    element, remarks = _type([item for value in values if value is not None for item in value], depth + 1)
    return Array(element), tuple(remarks)


def _can_be_a_field(name: str, other_names: Iterable[str]) -> bool:
    return bool(_FIELD.fullmatch(name)) and name.isprintable() and folded(name) not in set(map(folded, other_names))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        huge = "huge whole number" if abs(value) < 10**308 else "number out of range"
        return "whole number" if -(1 << 63) <= value < 1 << 63 else huge
    if isinstance(value, float):
        return "number" if math.isfinite(value) else "number out of range"
    if isinstance(value, str):
        return _kind_of_text(value)
    return "list" if isinstance(value, list) else "object"


def _kind_of_text(text: str) -> str:
    kind = "time" if _TIME.fullmatch(text) else "date" if _DATE.fullmatch(text) else "text"
    try:
        if kind != "text":
            read_time(text)
    except ValueError:
        return "text"
    return kind


def _no_zone(value: str | None) -> bool:
    return value is not None and value[-1] != "Z" and value[-6] not in "+-"
