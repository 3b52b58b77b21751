"""Our own Protobuf decoder, against Google's library: each message is the same row, or is refused by both."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from framework.encoding import decoder
from framework.formats import protobuf
from framework.formats.protobuf import descriptions, shapes
from framework.model.schemas import Schema, Version
from framework.schemas.versions import merge
from framework.types import Array, Map, Struct, Type, parse
from tests import test_protobuf as google
from tests.test_protobuf import EVERYTHING, MORE, OUTSIDE, STRANGE, TABLE, everything, framed, one, proto, using, written

if TYPE_CHECKING:
    from tests.decoding import Decoders

pytestmark = pytest.mark.spark


def ours(decoders: Decoders, schemas: tuple[Schema, ...], *messages: bytes | None) -> list[dict[str, Any]]:
    """As `Using` has them."""
    merged = merge([(Version(at, schema, at), shapes(schema)) for at, schema in enumerate(schemas, 1)])
    types_ = {shape.name: shape.type for shape in merged.shapes}
    described = {
        "format": "protobuf",
        "columns": [decoder.column(name, type_) for name, type_ in types_.items()],
        "writers": protobuf.read("value", merged).writers,
    }
    rows = decoders.rows(described, types_, messages)
    assert {row.code for row in rows} <= {None, "undecodable", "unknown_schema", "null_value"}
    return [
        {**dict.fromkeys(types_), "_sluice_wrong": True}
        if row.values is None
        else {**{name: _plain(each, types_[name]) for name, each in row.values.items()}, "_sluice_wrong": False}
        for row in rows
    ]


def _plain(value: Any, type_: Type) -> Any:
    """With maps as Python's."""
    if value is None:
        return None
    match type_:
        case Array():
            return [_plain(each, type_.element) for each in value]
        case Map():
            return {key: _plain(each, type_.value) for key, each in value}
        case Struct():
            return {field.name: _plain(value[field.name], field.type) for field in type_.fields}
    return value


_ZONE = ("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")  # two names of it


def differences(decoders: Decoders, schema: Schema, *bodies: bytes) -> list[Any]:
    messages = [framed(body) for body in bodies]
    pairs = zip(bodies, ours(decoders, (schema,), *messages), google.rows(using(schema), *messages), strict=True)
    return [(body, our, their) for body, our, their in pairs if repr(our) != repr(their).replace(*_ZONE)]


@pytest.mark.parametrize(("declared", "_type", "values"), TABLE, ids=[declared for declared, _, _ in TABLE])
def test_each_type(declared: str, _type: str, values: list[tuple[Any, Any]], decoders: Decoders) -> None:
    schema = one(declared, MORE)
    bodies = [written(schema)(**({} if value is None else {"f": value})).SerializeToString() for value, _ in values]
    rows = ours(decoders, (schema,), *map(framed, bodies))
    assert [row["f"] for row in rows] == [expected for _, expected in values]
    assert differences(decoders, schema, *bodies) == []


@pytest.mark.parametrize(("type_", "value"), OUTSIDE, ids=[f"{type_}{value!s:.40}" for type_, value in OUTSIDE])
def test_values_that_no_column_can_take(type_: str, value: dict[str, Any], decoders: Decoders) -> None:
    schema = one(
        f"{type_} a = 1; repeated {type_} b = 2; map<string, {type_}> c = 3; N n = 4;", f"message N {{ {type_} d = 1; }}"
    )
    message = written(schema)
    messages = [message(a=value), message(b=[value]), message(c={"k": value}), message(n={"d": value})]
    rows = ours(decoders, (schema,), *(framed(each) for each in messages))
    assert [row["_sluice_wrong"] for row in rows] == [True] * 4


def test_versions(decoders: Decoders) -> None:
    first = one("int32 id = 1; Place at = 2; repeated Place all = 3; map<string, Place> by = 4; float old = 5;",
                "message Place { string town = 1; uint64 n = 2; }")  # fmt: skip
    second = one("int64 id = 1; Place place = 2; repeated Place all = 3; map<string, Place> by = 4; string new = 6;",
                 "message Place { string city = 1; uint64 n = 2; optional bool sure = 3; }")  # fmt: skip
    place = {"town": "Ulm", "n": 1}
    old = written(first)(id=-1, at=place, all=[place], by={"a": place}, old=0.5)
    place = {"city": "Ulm", "n": 2}
    new = written(second)(id=2**40, place=place | {"sure": False}, all=[place], by={"a": place}, new="x")
    messages = [framed(new, 2), framed(old), framed(new, 2), framed(b"\xff")]
    assert ours(decoders, (first, second), *messages) == google.rows(using(first, second), *messages)


STRANGE_IN = [
    ("string a = 1;", STRANGE),
    ("N a = 1;", b"\x0a" + google._sized(STRANGE)),
    ("map<string, int32> a = 1;", b"\x0a" + google._sized(b"\x0a\x01a\x10\x01" + STRANGE)),
    ("google.protobuf.Timestamp a = 1;", b"\x0a" + google._sized(STRANGE)),
    ("google.protobuf.Struct a = 1;", b"\x0a" + google._sized(b"\x0a" + google._sized(STRANGE))),
    ("google.protobuf.Empty e = 1; string a = 2;", b"\x0a" + google._sized(STRANGE)),
    ("map<string, google.protobuf.Empty> e = 1; string a = 2;", b"\x0a" + google._sized(b"\x12" + google._sized(STRANGE))),
    ("int32 a = 1;", b"\x0d\0\0\0\0"),  # another wire type
    ("repeated string a = 1;", b"\x08\x01"),
]


@pytest.mark.parametrize(("field", "body"), STRANGE_IN)
def test_a_field_that_the_schema_does_not_have(field: str, body: bytes, decoders: Decoders) -> None:
    schema = one(field, "message N { int32 x = 1; }")
    (row,) = ours(decoders, (schema,), framed(body))
    assert row["_sluice_wrong"]
    assert differences(decoders, schema, body) == []


PROTO2 = proto(
    "message M { required int32 a = 1; optional string b = 2; optional int32 c = 3 [default = 7]; optional E d = 4;"
    ' repeated E e = 5; optional E f = 6 [default = Y]; map<string, E> g = 7; optional string h = 8 [default = "hä"];'
    " optional bytes i = 9; repeated string j = 10; map<string, N> k = 11; optional N l = 12; optional double m = 13 [default = -inf];"
    " optional uint64 n = 14 [default = 18446744073709551615]; optional bool o = 15 [default = true];"
    ' optional bytes p = 16 [default = "\\377"]; }'
    " enum E { X = 0; Y = 2; } message N { required string z = 1; }",
    'syntax = "proto2";',
)


def test_proto2(decoders: Decoders) -> None:
    text = b"\x08\x01"
    bodies = [
        b"", text, text + b"\x20\x01", text + b"\x28\x01", text + b"\x3a\x05\x0a\x01a\x10\x01", text + b"\x12\x01\xff",
        text + b"\x52\x01a\x52\x01\xff", text + b"\x3a\x05\x0a\x01\xff\x10\0", text + b"\x62\0", text + b"\x5a\x02\x12\0",
        text + b"\x3a\x03\x0a\x01a", text + b"\x3a\x02\x10\x02", text + b"\x62\x03\x0a\x01z", text + b"\x62\0\x62\x03\x0a\x01z",
    ]  # fmt: skip
    assert differences(decoders, PROTO2, *bodies) == []


def test_editions_and_the_index_of_the_message(decoders: Decoders) -> None:
    schema = proto(
        "message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; int32 c = 3 [default = 5]; E d = 4;"
        " int32 e = 5 [features.field_presence = LEGACY_REQUIRED]; string f = 6 [features.utf8_validation = NONE]; }"
        " enum E { option features.enum_type = CLOSED; X = 1; }",
        'edition = "2023";',
    )
    assert differences(decoders, schema, b"\x28\0", b"", b"\x28\0\x20\x02", b"\x28\0\x32\x01\xff") == []
    indexes = [b"\0", b"\2\0", b"", b"\2", b"\2\2", b"\4\0\0", b"\1\0", b"\xff" * 20]
    rows = ours(decoders, (one("int32 a = 1;"),), *(b"\0\0\0\0\1" + index + b"\x08\x05" for index in indexes))
    assert [row["a"] for row in rows] == [5, 5] + [None] * 6


def test_parts_of_a_message_are_merged(decoders: Decoders) -> None:
    """Of a field that stands there twice: messages are merged, lists go on, of all else and of a oneof the last counts."""
    schema = one(
        "N n = 1; int32 i = 2; repeated int32 r = 3; oneof o { N a = 4; string b = 5; N c = 8; } map<string, N> m = 6;"
        " google.protobuf.Timestamp t = 7;",
        "message N { int32 x = 1; string y = 2; repeated int32 z = 3; }",
    )
    x, y, z = b"\x08\x05", b"\x12\x01y", b"\x1a\x02\x01\x02"

    def sized(tag: int, body: bytes) -> bytes:
        return bytes([tag]) + google._sized(body)

    bodies = [
        sized(0x0A, x) + sized(0x0A, y + z) + sized(0x0A, z), b"\x10\x01\x10\x02", b"\x18\x01\x1a\x02\x02\x03\x18\x04",
        sized(0x22, x) + sized(0x2A, b"b"), sized(0x2A, b"b") + sized(0x22, y), sized(0x22, x) + sized(0x42, y) + sized(0x22, z),
        sized(0x22, x) + sized(0x22, y), sized(0x32, b"\x0a\x01k" + sized(0x12, x) + sized(0x12, y)),
        sized(0x32, b"\x0a\x01k" + sized(0x12, x)) + sized(0x32, b"\x0a\x01k" + sized(0x12, y)), sized(0x32, b""),
        sized(0x3A, b"\x08\x01") + sized(0x3A, b"\x10\x7f"), b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x10\xff\xff\xff\xff\xff\x01", b"\x1a\0", b"\x10\x81\x00", b"\x10" + b"\x80" * 10 + b"\0",
    ]  # fmt: skip
    assert differences(decoders, schema, *bodies) == []


def test_json_values(decoders: Decoders) -> None:
    schema = one("google.protobuf.Struct s = 1; google.protobuf.Value v = 2; google.protobuf.ListValue l = 3;")
    chance = random.Random(3)
    numbers = [
        0.0,
        -0.0,
        1e16,
        1e15,
        123456789012345680.0,
        0.1,
        1e-4,
        1e-5,
        1.5e-7,
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
    ]
    numbers += [2.0**-44, 2.0**53 - 1, 2.0**53, -(2.0**53), 9007199254740994.0, float("nan"), float("inf")]
    numbers += [chance.uniform(-1, 1) * 10.0 ** chance.randint(-300, 300) for _ in range(2000)]
    bodies = []
    for number in numbers:
        message = written(schema)()
        message.l.extend([number])
        bodies.append(message.SerializeToString())
    message = written(schema)()
    message.s.update({"b": {"a": [None, True, 'q"\\\n\t\x01\x7f/\u2028ü']}, "": []})
    bodies += [message.SerializeToString(), b"\x12\0", b"\x12\x02\x08\0", b"\x12\x02\x08\x07"]
    assert differences(decoders, schema, *bodies) == []


def test_hostile_messages(decoders: Decoders) -> None:
    deep = b""
    for _ in range(10_000):
        deep = b"\x32" + google._sized(b"\x0a" + google._sized(deep))
    schema = one("google.protobuf.Value v = 1; string s = 2; repeated int32 n = 3; map<string, string> m = 4;")
    bad = [
        b"\x0a" + google._sized(deep), b"\x0b" * 1_000_000, b"\x12\xff\xff\xff\xff\x07", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x12" + b"\xff" * 20, b"\x1a\xff\xff\xff\xff\x07\1", b"\x22\xff\xff\xff\xff\x07\x0a", b"\0\0", b"\x0f\1", b"\x0e\1", b"\x0c",
    ]  # fmt: skip
    assert [row["_sluice_wrong"] for row in ours(decoders, (schema,), *map(framed, bad))] == [True] * len(bad)
    fields = " ".join(f"int32 f{n} = {n};" for n in range(1, 1001))
    wide = one("repeated N n = 1;", f"message N {{ {fields} }}")
    types_ = {"n": shapes(wide)[0].type}
    described = {"format": "protobuf", "columns": [decoder.column("n", types_["n"])], "writers": {"1": descriptions.writer(wide)}}
    (row,) = decoders.rows(described, types_, [framed(b"\x0a\0" * 5_000_000)])
    assert row.code == "too_large"


def test_reasons(decoders: Decoders) -> None:
    schema = one("int32 a = 1; N n = 2;", "message N { google.protobuf.Timestamp at = 1; string s = 2; }")
    types_ = {"a": parse("int"), "n": parse("struct<at timestamp, s string>")}
    columns = [decoder.column(name, type_) for name, type_ in types_.items()]
    description_ = {"format": "protobuf", "columns": columns, "writers": {"1": descriptions.writer(schema)}}
    reasons = {
        b"\x08": "field `a`: the message is cut off",
        b"\x12\x04\x0a\x02\x10\xff": "field `n.at.nanos`: the message is cut off",
        b"\x12\x09\x0a\x07\x10" + b"\xff" * 5 + b"\x7f": "field `n.at`: wanted timestamp, found 0 seconds and -1 nanoseconds",
        b"\x12\x03\x12\x01\xff": "field `n.s`: the text is not UTF-8",
        STRANGE: "the schema has no field with the number 1023 in `M`",
        b"\x0a\x01a": "field `a`: wanted int32, found the wire type 2",
    }
    rows = decoders.rows(description_, types_, [framed(body) for body in reasons])
    assert {body: row.why for body, row in zip(reasons, rows, strict=True)} == reasons


@pytest.mark.slow
def test_messages_cut_off_or_changed_at_random(decoders: Decoders) -> None:
    chance = random.Random(21)
    whole = everything()
    bodies = [whole[:at] for at in range(len(whole) + 1)] + [google._changed(chance, whole) for _ in range(40_000)]
    assert differences(decoders, EVERYTHING, *bodies) == []
    two = b"\x08\x01\x12\x01b\x18\x03\x20\x02\x2a\x02\0\2\x3a\x05\x0a\x01a\x10\x02\x4a\x01i\x5a\x07\x0a\x01k\x12\x02\x0a\0\x62\x03\x0a\x01z"
    assert differences(decoders, PROTO2, *(google._changed(chance, two) for _ in range(20_000))) == []
