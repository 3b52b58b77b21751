"""A sample of each type of Avro, with the values that must come."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from tests.support.registry_project import record

UTC = dt.timezone.utc


def logical(type_: Any, name: str, **attributes: Any) -> dict[str, Any]:
    return {**(type_ if isinstance(type_, dict) else {"type": type_}), "logicalType": name, **attributes}


def fixed(size: int, name: str = "Fixed") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


EARLY, LATE = dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
MILLIS = dt.datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)
# A row of the table: Avro's type, and values as they are written and as they come back.
SAMPLES: dict[str, tuple[Any, list[tuple[Any, Any]]]] = {
    "boolean": ("boolean", [(True, True), (False, False)]),
    "int": ("int", [(-(2**31), -(2**31)), (2**31 - 1, 2**31 - 1)]),
    "long": ("long", [(-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)]),
    "float": ("float", [(-1.5, -1.5), (3.4028234663852886e38, 3.4028234663852886e38), (float("inf"), float("inf"))]),
    "double": ("double", [(5e-324, 5e-324), (1.7976931348623157e308, 1.7976931348623157e308)]),
    "bytes": ("bytes", [(b"", b""), (bytes(range(256)), bytes(range(256)))]),
    "string": ("string", [("", ""), ("é\U0001f600\x00", "é\U0001f600\x00")]),
    "enum": ({"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}, [("SELL", "SELL")]),
    "fixed": (fixed(3), [(b"\x00\xff\x7f", b"\x00\xff\x7f")]),
    "array": ({"type": "array", "items": "int"}, [([], []), ([1, -1], [1, -1])]),
    "map": ({"type": "map", "values": ["null", "long"]}, [({}, []), ({"a": 1, "": None}, [("a", 1), ("", None)])]),
    "record": (record(("a", "int"), ("b", ["null", "string"]), name="In"), [({"a": 1, "b": None}, {"a": 1, "b": None})]),
    "union of null and a type": (["string", "null"], [(None, None), ("x", "x")]),
    "union of int and long": (["int", "long"], [(1, 1), (2**40, 2**40)]),
    "union of float and double": (["double", "float"], [(1.5, 1.5)]),
    "union of other types": (
        ["null", "string", "int", record(("a", "int"), name="Rec")],
        [(None, None), ("x", {"string": "x", "int": None, "Rec": None}), (7, {"string": None, "int": 7, "Rec": None}),
         ({"a": 5}, {"string": None, "int": None, "Rec": {"a": 5}})],
    ),
    "decimal of bytes": (logical("bytes", "decimal", precision=38, scale=9), [(Decimal("9" * 29 + ".999999999"),) * 2]),
    "decimal of fixed": (logical(fixed(9), "decimal", precision=20, scale=2), [(Decimal("-999999999999999999.99"),) * 2]),
    "date": (logical("int", "date"), [(dt.date(1, 1, 1),) * 2, (dt.date(9999, 12, 31),) * 2]),
    "time-millis": (logical("int", "time-millis"), [(dt.time(23, 59, 59, 999000), 86399999)]),
    "time-micros": (logical("long", "time-micros"), [(dt.time(23, 59, 59, 999999), 86399999999)]),
    "timestamp-millis": (logical("long", "timestamp-millis"), [(EARLY, EARLY), (MILLIS, MILLIS)]),
    "timestamp-micros": (logical("long", "timestamp-micros"), [(EARLY, EARLY), (LATE, LATE)]),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), [(1767607200123456789, 1767607200123456789)]),
    "local-timestamp-millis": (logical("long", "local-timestamp-millis"), [(MILLIS.replace(tzinfo=None),) * 2]),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), [(LATE.replace(tzinfo=None),) * 2]),
    "uuid of string": (logical("string", "uuid"), [("0f8fad5b-d9cb-469f-a165-70867728950e",) * 2]),
    "uuid of fixed": (logical(fixed(16), "uuid"), [(bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f")]),
    "duration": (logical(fixed(12), "duration"), [(bytes(range(12)),) * 2]),
}  # fmt: skip
PLACES = ("alone", "in_array", "in_map", "in_record")


def placed(type_: Any, place: str, name: str) -> Any:
    """The type at the place; a named type gets a name of its own there."""
    type_ = named(type_, f"{name}_{place}")
    match place:
        case "in_array":
            return {"type": "array", "items": type_}
        case "in_map":
            return {"type": "map", "values": type_}
        case "in_record":
            return record(("x", type_), name=f"R_{name}")
    return type_


def named(type_: Any, suffix: str) -> Any:
    if isinstance(type_, list):
        return [named(part, suffix) for part in type_]
    return {**type_, "name": f"{type_['name']}_{suffix}"} if isinstance(type_, dict) and "name" in type_ else type_


def placed_value(value: Any, place: str) -> Any:
    return {"alone": value, "in_array": [value], "in_map": {"k": value}, "in_record": {"x": value}}[place]


def came(value: Any, place: str) -> Any:
    return [("k", value)] if place == "in_map" else placed_value(value, place)


def of_union(value: Any, suffix: str) -> Any:
    """A union's struct has the record's name for a field."""
    return (
        {f"Rec_{suffix}" if name == "Rec" else name: field_value for name, field_value in value.items()}
        if isinstance(value, dict)
        else value
    )
