"""A sample of each type of Protobuf, with the values that must come, and values that are outside of their type."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from framework.plan.schema import Schema
from tests.support.protobuf_messages import framed, one, rows, using, written

UTC = timezone.utc
MOMENT = {"seconds": 253402300799, "nanos": 999_999_999}
# A declaration, the type of its column, and values as they are written and as they are read.
TABLE: list[tuple[str, str, list[tuple[Any, Any]]]] = [
    *(
        (f"{name} f = 1;", "int", [(-(2**31), -(2**31)), (2**31 - 1, 2**31 - 1), (0, 0)])
        for name in ("int32", "sint32", "sfixed32")
    ),
    *((f"{name} f = 1;", "bigint", [(2**32 - 1, 2**32 - 1), (0, 0)]) for name in ("uint32", "fixed32")),
    *((f"{name} f = 1;", "bigint", [(-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)]) for name in ("int64", "sint64", "sfixed64")),
    *((f"{name} f = 1;", "decimal(20,0)", [(2**64 - 1, Decimal(2**64 - 1)), (0, Decimal(0))]) for name in ("uint64", "fixed64")),
    ("float f = 1;", "float", [(3.4028234663852886e38, 3.4028234663852886e38), (float("-inf"), float("-inf")), (0.5, 0.5)]),
    ("double f = 1;", "double", [(1.7976931348623157e308, 1.7976931348623157e308), (5e-324, 5e-324), (float("inf"), float("inf"))]),
    ("bool f = 1;", "boolean", [(True, True), (False, False)]),
    ("string f = 1;", "string", [("", ""), ("a\0ü\U0001f600", "a\0ü\U0001f600"), ("x" * 100_000, "x" * 100_000)]),
    ("bytes f = 1;", "binary", [(b"", b""), (bytes(range(256)), bytes(range(256)))]),
    ("E f = 1;", "string", [(0, "NONE"), (1, "SOME"), (7, "7"), (-1, "-1")]),
    ("optional int32 f = 1;", "int", [(None, None), (0, 0)]),
    ("optional string f = 1;", "string", [(None, None), ("", "")]),
    ("optional E f = 1;", "string", [(None, None), (0, "NONE")]),
    ("N f = 1;", "struct<x:int,y:string>", [(None, None), ({}, {"x": 0, "y": None}), ({"x": 1, "y": "z"}, {"x": 1, "y": "z"})]),
    ("repeated sint64 f = 1;", "array<bigint>", [([], []), ([-1, 2**63 - 1], [-1, 2**63 - 1])]),
    ("repeated int32 f = 1 [packed = false];", "array<int>", [([1, 2], [1, 2])]),
    ("repeated uint64 f = 1;", "array<decimal(20,0)>", [([2**64 - 1], [Decimal(2**64 - 1)])]),
    ("repeated E f = 1;", "array<string>", [([1, 5, 0], ["SOME", "5", "NONE"])]),
    ("repeated N f = 1;", "array<struct<x:int,y:string>>", [([{"x": 1}, {}], [{"x": 1, "y": None}, {"x": 0, "y": None}])]),
    ("map<string, int32> f = 1;", "map<string,int>", [({}, {}), ({"": 0, "a": 1}, {"": 0, "a": 1})]),
    ("map<int64, string> f = 1;", "map<string,string>", [({-(2**63): "a", 7: ""}, {"-9223372036854775808": "a", "7": ""})]),
    ("map<fixed64, bool> f = 1;", "map<string,boolean>", [({2**64 - 1: True}, {"18446744073709551615": True})]),
    ("map<bool, E> f = 1;", "map<string,string>", [({True: 1, False: 9}, {"true": "SOME", "false": "9"})]),
    ("map<string, N> f = 1;", "map<string,struct<x:int,y:string>>", [({"a": {"y": "b"}}, {"a": {"x": 0, "y": "b"}})]),
    ("oneof which { string f = 1; int32 g = 2; }", "string", [(None, None), ("", "")]),
    (
        "google.protobuf.Timestamp f = 1;",
        "timestamp",
        [
            (None, None),
            ({}, datetime(1970, 1, 1, tzinfo=UTC)),
            ({"seconds": -62135596800}, datetime(1, 1, 1, tzinfo=UTC)),
            (MOMENT, datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
            ({"seconds": -1, "nanos": 999_999_999}, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        ],
    ),
    (
        "google.protobuf.Duration f = 1;",
        "bigint",
        [
            (None, None),
            ({"seconds": -315_576_000_000, "nanos": -999_999_999}, -315_576_000_000_999_999),
            ({"seconds": 315_576_000_000, "nanos": 1_999}, 315_576_000_000_000_001),
        ],
    ),
    ("google.protobuf.DoubleValue f = 1;", "double", [(None, None), ({}, 0.0), ({"value": 0.1}, 0.1)]),
    ("google.protobuf.FloatValue f = 1;", "float", [({"value": 0.5}, 0.5)]),
    ("google.protobuf.Int64Value f = 1;", "bigint", [({"value": -(2**63)}, -(2**63))]),
    ("google.protobuf.UInt64Value f = 1;", "decimal(20,0)", [(None, None), ({"value": 2**64 - 1}, Decimal(2**64 - 1))]),
    ("google.protobuf.Int32Value f = 1;", "int", [({"value": -(2**31)}, -(2**31))]),
    ("google.protobuf.UInt32Value f = 1;", "bigint", [({"value": 2**32 - 1}, 2**32 - 1)]),
    ("google.protobuf.BoolValue f = 1;", "boolean", [({}, False), ({"value": True}, True)]),
    ("google.protobuf.StringValue f = 1;", "string", [(None, None), ({}, ""), ({"value": "a"}, "a")]),
    ("google.protobuf.BytesValue f = 1;", "binary", [({"value": b"\xff"}, b"\xff")]),
    ("repeated google.protobuf.StringValue f = 1;", "array<string>", [([{"value": "a"}, {}], ["a", ""])]),
    ("google.protobuf.Any f = 1;", "struct<type_url:string,value:binary>", [({"type_url": "t/M"}, {"type_url": "t/M", "value": b""})]),
    ("google.protobuf.FieldMask f = 1;", "struct<paths:array<string>>", [({"paths": ["a.b"]}, {"paths": ["a.b"]})]),
    ("google.type.Date f = 1;", "date", [(None, None), ({"year": 1, "month": 1, "day": 1}, date(1, 1, 1))]),
    (
        "google.type.TimeOfDay f = 1;",
        "string",
        [
            ({}, "00:00:00"),
            ({"hours": 23, "minutes": 59, "seconds": 60, "nanos": 1}, "23:59:60.000000001"),
            ({"hours": 24}, "24:00:00"),
            ({"nanos": 500_000_000}, "00:00:00.5"),
        ],
    ),
    (
        "confluent.type.Decimal f = 1;",
        "decimal(38,9)",
        [
            (None, None),
            ({}, Decimal(0)),
            ({"value": b"\x04\xd2", "scale": 2}, Decimal("12.34")),
            ({"value": b"\xff", "scale": 9}, Decimal("-0.000000001")),
            ({"value": b"\x05", "scale": -3}, Decimal(5000)),
            ({"value": (10**20).to_bytes(9, "big"), "scale": 20}, Decimal(1)),
            ({"value": b"", "scale": 2**31 - 1}, Decimal(0)),
        ],
    ),
    (
        'confluent.type.Decimal f = 1 [(confluent.field_meta) = {params: [{key: "precision", value: "38"}, {key: "scale", value: "38"}]}];',
        "decimal(38,38)",
        [({"value": (1 - 10**38).to_bytes(16, "big", signed=True), "scale": 38}, Decimal("-0." + "9" * 38))],
    ),
    (
        'repeated confluent.type.Decimal f = 1 [(confluent.field_meta) = {params: [{key: "precision", value: "5"}]}];',
        "array<decimal(5,0)>",
        [([{"value": b"\x01"}], [Decimal(1)])],
    ),
]  # fmt: skip
OTHER_TYPES = "enum E { NONE = 0; SOME = 1; } message N { int32 x = 1; optional string y = 2; }"
OUTSIDE: list[tuple[str, dict[str, Any]]] = [
    ("google.protobuf.Timestamp", {"seconds": 253402300800}),
    ("google.protobuf.Timestamp", {"seconds": -62135596801, "nanos": 999_999_999}),
    ("google.protobuf.Timestamp", {"seconds": 2**63 - 1}),
    ("google.protobuf.Timestamp", {"nanos": 1_000_000_000}),
    ("google.protobuf.Timestamp", {"nanos": -1}),
    ("google.protobuf.Duration", {"seconds": 315_576_000_001}),
    ("google.protobuf.Duration", {"seconds": 1, "nanos": -1}),
    ("google.protobuf.Duration", {"nanos": 2**31 - 1}),
    ("google.type.Date", {}),
    ("google.type.Date", {"year": 2023, "month": 2, "day": 29}),
    ("google.type.Date", {"year": 2**31 - 1, "month": 1, "day": 1}),
    ("google.type.Date", {"year": -1, "month": -1, "day": -1}),
    ("google.type.TimeOfDay", {"hours": 24, "nanos": 1}),
    ("google.type.TimeOfDay", {"minutes": 60}),
    ("google.type.TimeOfDay", {"seconds": -1}),
    ("confluent.type.Decimal", {"value": b"\x01", "scale": 10}),
    ("confluent.type.Decimal", {"value": b"\x01", "scale": 2**31 - 1}),
    ("confluent.type.Decimal", {"value": b"\x01", "scale": -(2**31)}),
    ("confluent.type.Decimal", {"value": (10**29).to_bytes(13, "big")}),
    ("confluent.type.Decimal", {"value": b"\x7f" * 100_000}),
]
STRANGE = b"\xf8\x3f\x01"  # the field 1023


def is_wrong_all(schema: Schema, bodies: list[bytes]) -> bool:
    return all(decoded["_sluice_wrong"] for decoded in rows(using(schema), *map(framed, bodies)))


EVERYTHING = one(
    "int64 id = 1; string name = 2; double heat = 3; optional bool ok = 4; N n = 5; repeated N all = 6; map<int32, N> by = 7;"
    " google.protobuf.Timestamp at = 8; google.protobuf.Struct any = 9; confluent.type.Decimal cost = 10; E e = 11;"
    " google.type.Date day = 12; oneof which { string left = 13; N right = 14; } repeated sint32 numbers = 15;"
    " google.protobuf.StringValue wrapped = 16; uint64 big = 17; bytes raw = 18; google.protobuf.Duration took = 19;",
    "enum E { NONE = 0; SOME = 1; } message N { int32 x = 1; repeated string y = 2; map<string, fixed64> z = 3; }",
)


def everything() -> bytes:
    inner = {"x": 300, "y": ["a", "ü"], "z": {"k": 2**64 - 1}}
    message = written(EVERYTHING)(
        id=-5, name="näme", heat=0.1, ok=False, n=inner, all=[inner, {}], by={7: inner}, at=MOMENT, e="SOME", raw=b"\0\xff",
        cost={"value": b"\x04\xd2", "scale": 2}, day={"year": 2024, "month": 2, "day": 29}, right=inner, numbers=[-1, 2, 3],
        wrapped={"value": "w"}, big=2**63, took={"seconds": -5},
    )  # fmt: skip
    message.any.update({"a": [1, {"b": "c"}], "d": None})
    return bytes(message.SerializeToString())
