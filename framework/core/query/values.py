"""Reads DuckDB's values into Python without loss: times, decimals and values larger than Python's own become text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from framework.base import iso_times
from framework.sql.standard import identifier

_INTEGERS = frozenset(
    ("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint")
)
_NUMBERS = _INTEGERS | {"float", "double", "decimal"}
_AS_THEY_ARE = _INTEGERS | {"boolean", "double", "varchar", "blob"}
_NESTED = ("list", "array", "struct", "map")


@dataclass(frozen=True)
class ValueReader:
    """The way to read values of a type: the type to which DuckDB casts them first, and the conversion of one value."""

    cast: str
    is_cast: bool
    value: Callable[[Any], Any] | None  # None: as it is
    is_number: bool

    def select(self, column: str) -> str:
        return f"CAST({column} AS {self.cast})" if self.is_cast else column


def reader(type_: Any) -> ValueReader:
    """The reader of a DuckDBPyType."""
    nested = _nested(type_) if type_.id in _NESTED else None
    if nested is not None:
        return nested
    if type_.id in _AS_THEY_ARE:
        return ValueReader(str(type_), False, None, type_.id in _NUMBERS)
    if type_.id == "float":  # as the shortest text: a Python float would have digits that nobody wrote
        return ValueReader("VARCHAR", True, float, True)
    return ValueReader("VARCHAR", True, iso_times.of_sql if type_.id.startswith("timestamp") else None, type_.id in _NUMBERS)


def _nested(type_: Any) -> ValueReader:
    readers = {name: reader(child) for name, child in type_.children if name != "size"}
    is_cast = any(inner.is_cast for inner in readers.values())
    if type_.id == "struct":
        fields = ", ".join(f"{identifier(name)} {inner.cast}" for name, inner in readers.items())
        return ValueReader(
            f"STRUCT({fields})", is_cast, lambda raw: {name: _read(readers[name], raw[name]) for name in readers}, False
        )
    if type_.id == "map":
        key, value = readers["key"], readers["value"]
        # Python's dicts cannot have dicts as keys: DuckDB then returns two lists.
        pairs = _listed if dict(type_.children)["key"].id in _NESTED else _keyed
        return ValueReader(f"MAP({key.cast}, {value.cast})", is_cast, lambda raw: pairs(key, value, raw), False)
    child = readers["child"]
    return ValueReader(f"{child.cast}[]", is_cast, lambda raw: [_read(child, item) for item in raw], False)


def _keyed(key: ValueReader, value: ValueReader, raw: dict[Any, Any]) -> dict[Any, Any]:
    return {_read(key, raw_key): _read(value, raw_value) for raw_key, raw_value in raw.items()}


def _listed(key: ValueReader, value: ValueReader, raw: dict[str, list[Any]]) -> list[dict[str, Any]]:
    pairs = zip(raw["key"], raw["value"], strict=True)
    return [{"key": _read(key, raw_key), "value": _read(value, raw_value)} for raw_key, raw_value in pairs]


def _read(value_reader: ValueReader, raw: Any) -> Any:
    return raw if raw is None or value_reader.value is None else value_reader.value(raw)
