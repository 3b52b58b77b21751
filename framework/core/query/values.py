"""DuckDB's values as Python can hold them without loss: moments, decimals and what is larger than Python's own as text."""

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
class Reader:
    """The way to read values of a type: the type they are cast to first, and the conversion of one value."""

    cast: str
    is_cast: bool
    value: Callable[[Any], Any] | None  # None: as it is
    is_number: bool

    def select(self, column: str) -> str:
        return f"CAST({column} AS {self.cast})" if self.is_cast else column


def reader(type_: Any) -> Reader:
    """The reader of a DuckDBPyType."""
    nested = _nested(type_) if type_.id in _NESTED else None
    if nested is not None:
        return nested
    if type_.id in _AS_THEY_ARE:
        return Reader(str(type_), False, None, type_.id in _NUMBERS)
    if type_.id == "float":  # as the shortest text: a Python float would have digits that nobody wrote
        return Reader("VARCHAR", True, float, True)
    return Reader("VARCHAR", True, iso_times.of_sql if type_.id.startswith("timestamp") else None, type_.id in _NUMBERS)


def _nested(type_: Any) -> Reader:
    inside = {name: reader(child) for name, child in type_.children if name != "size"}
    is_cast = any(each.is_cast for each in inside.values())
    if type_.id == "struct":
        fields = ", ".join(f"{identifier(name)} {each.cast}" for name, each in inside.items())
        return Reader(f"STRUCT({fields})", is_cast, lambda raw: {name: _read(inside[name], raw[name]) for name in inside}, False)
    if type_.id == "map":
        key, value = inside["key"], inside["value"]
        # Python's dicts have no dicts as keys: DuckDB gives two lists then.
        pairs = _listed if dict(type_.children)["key"].id in _NESTED else _keyed
        return Reader(f"MAP({key.cast}, {value.cast})", is_cast, lambda raw: pairs(key, value, raw), False)
    child = inside["child"]
    return Reader(f"{child.cast}[]", is_cast, lambda raw: [_read(child, each) for each in raw], False)


def _keyed(key: Reader, value: Reader, raw: dict[Any, Any]) -> dict[Any, Any]:
    return {_read(key, each): _read(value, inner) for each, inner in raw.items()}


def _listed(key: Reader, value: Reader, raw: dict[str, list[Any]]) -> list[dict[str, Any]]:
    pairs = zip(raw["key"], raw["value"], strict=True)
    return [{"key": _read(key, each), "value": _read(value, inner)} for each, inner in pairs]


def _read(of: Reader, raw: Any) -> Any:
    return raw if raw is None or of.value is None else of.value(raw)
