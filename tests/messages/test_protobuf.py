"""Protobuf: each type as its column, versions that differ, and bytes that no schema describes. Google's library writes the
messages, our own decoder reads them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from framework.base.type_text import parse
from framework.base.types import Field, Struct
from framework.messages.encoding.confluent_frame import decoding
from framework.messages.formats.protobuf import encoder, read, schema_text, shapes
from framework.messages.schemas.versions import ColumnShape, Unsupported, merge
from framework.plan.schema import Schema, Version
from tests.support.protobuf_messages import changed, framed, is_wrong, one, proto, rows, running, sized, using, written
from tests.support.protobuf_samples import EVERYTHING, OTHER_TYPES, OUTSIDE, STRANGE, TABLE, UTC, everything, is_wrong_all

__all__ = ["running"]  # a fixture


def row(schema: Schema, message: Any) -> dict[str, Any]:
    """Decodes one message, which must be right."""
    (decoded,) = rows(using(schema), framed(message))
    assert decoded.pop("_sluice_wrong") is False
    return dict(decoded)


def types(schema: Schema) -> dict[str, str]:
    return {shape.name: str(shape.type) for shape in shapes(schema)}


@pytest.mark.spark
@pytest.mark.parametrize(("declared", "type_", "values"), TABLE, ids=[declared for declared, _, _ in TABLE])
def test_each_type_is_its_column(declared: str, type_: str, values: list[tuple[Any, Any]]) -> None:
    schema = one(declared, OTHER_TYPES)
    assert types(schema)["f"] == type_
    for value, expected in values:
        message = written(schema)(**({} if value is None else {"f": value}))
        assert row(schema, message)["f"] == expected


@pytest.mark.spark
def test_json_values_are_json_text_in_the_order_of_the_message() -> None:
    schema = one("google.protobuf.Struct s = 1; google.protobuf.Value v = 2; google.protobuf.ListValue l = 3;")
    entries = [(b"b", b"\x11" + bytes(6) + b"\xf8\x3f"), (b"a", b"\x08\0"), (b"b", b"\x1a\x02\xc3\xbc")]  # 1.5, null, ü
    inside = b"".join(b"\x0a" + sized(b"\x0a" + sized(key) + b"\x12" + sized(value)) for key, value in entries)
    body = b"\x0a" + sized(inside)
    assert row(schema, body) == {"s": '{"b":"ü","a":null}', "v": None, "l": None}
    message = written(schema)()
    message.l.extend([1, 2**53, -0.5, 1e300, "a", True, None])
    message.l.add_list()
    message.l.add_struct()["x"] = [1]
    assert row(schema, message)["l"] == '[1,9007199254740992.0,-0.5,1e+300,"a",true,null,[],{"x":[1]}]'
    assert row(schema, b"\x12\0")["v"] == "null"
    assert row(schema, b"\x12\x02\x08\0")["v"] == "null"
    for number in (float("nan"), float("inf")):
        message = written(schema)()
        message.s["x"] = number
        assert is_wrong(schema, message)


@pytest.mark.spark
@pytest.mark.parametrize(("type_", "value"), OUTSIDE, ids=[f"{type_}{value!s:.40}" for type_, value in OUTSIDE])
def test_values_that_no_column_can_take_are_wrong(type_: str, value: dict[str, Any]) -> None:
    schema = one(
        f"{type_} a = 1; repeated {type_} b = 2; map<string, {type_}> c = 3; N n = 4;", f"message N {{ {type_} d = 1; }}"
    )
    message = written(schema)
    for wrong_message in (message(a=value), message(b=[value]), message(c={"k": value}), message(n={"d": value})):
        assert is_wrong(schema, wrong_message)


@pytest.mark.spark
def test_versions_become_the_columns_of_all() -> None:
    first_schema = one("int32 id = 1; Place at = 2; repeated Place all = 3; map<string, Place> by = 4; float old = 5;",
                "message Place { string town = 1; uint64 n = 2; }")  # fmt: skip
    second_schema = one("int64 id = 1; Place place = 2; repeated Place all = 3; map<string, Place> by = 4; string new = 6;",
                 "message Place { string city = 1; uint64 n = 2; optional bool sure = 3; }")  # fmt: skip
    third_schema = one("uint32 id = 1; string place = 2;")
    merged = merge(
        [
            (Version(number, schema, number), shapes(schema))
            for number, schema in enumerate((first_schema, second_schema, third_schema), 1)
        ]
    )
    assert [version.id for version, _ in merged.unfit] == [3]
    assert [str(shape.type) for shape in merged.shapes] == [
        "bigint",
        "struct<city:string,n:decimal(20,0),sure:boolean>",
        "array<struct<city:string,n:decimal(20,0),sure:boolean>>",
        "map<string,struct<city:string,n:decimal(20,0),sure:boolean>>",
        "float",
        "string",
    ]
    place = {"town": "Ulm", "n": 1}
    old = written(first_schema)(id=-1, at=place, all=[place], by={"a": place}, old=0.5)
    place = {"city": "Ulm", "n": 2}
    new = written(second_schema)(id=2**40, place=place | {"sure": False}, all=[place], by={"a": place}, new="x")
    decoded = rows(
        using(first_schema, second_schema), framed(new, 2), framed(old), None, framed(new, 3), framed(new, 2), framed(b"\xff")
    )
    old_place = {"city": "Ulm", "n": Decimal(1), "sure": None}
    new_place = {"city": "Ulm", "n": Decimal(2), "sure": None}
    of_new = {
        "id": 2**40,
        "place": new_place | {"sure": False},
        "all": [new_place],
        "by": {"a": new_place},
        "old": None,
        "new": "x",
    }
    of_old = {"id": -1, "place": old_place, "all": [old_place], "by": {"a": old_place}, "old": 0.5, "new": None}
    wrong = dict.fromkeys(of_old) | {"_sluice_wrong": True}
    right = {"_sluice_wrong": False}
    assert decoded == [of_new | right, of_old | right, None, None, of_new | right, wrong]


def test_what_the_plan_gets() -> None:
    schema = one("int32 a = 1;")
    merged = merge([(Version(5, schema, 1), shapes(schema))])
    for part, column in (("key", "_sluice_decoded_key"), ("value", "_sluice_decoded")):
        reading = read(part, merged)  # type: ignore[arg-type]
        assert reading.columns == ({"name": "a", "type": "int"},)
        member = {"name": "a", "number": 1, "kind": "int32", "default": "0"}
        assert reading.writers == {5: {"first": "M", "types": {"M": [member]}, "enums": {}}}
        sql = [("a", f"{column}.`a`")]
        assert [name for name, _ in decoding(part, merged, reading, sql, (), ()).structs] == [column]  # type: ignore[arg-type]


@pytest.mark.spark
def test_messages_without_a_schema_are_null_and_not_wrong() -> None:
    decode = using(one("int32 a = 1;"))
    none = [None, b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\1\0", framed(b"", 2), b"\0\0\0\0\xff"]
    assert rows(decode, *none) == [None] * len(none)
    assert rows(decode, framed(b"\x08\x05"), *none)[0] == {"a": 5, "_sluice_wrong": False}
    assert rows(decode) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("index", "right"),
    [
        (b"\0", True),
        (b"\2\0", True),
        (b"", False),
        (b"\2", False),
        (b"\2\2", False),
        (b"\4\0\0", False),
        (b"\1\0", False),
        (b"\xff" * 20, False),
    ],
)
def test_only_the_first_message_type_is_read(index: bytes, right: bool) -> None:
    decode = using(proto("message M { int32 a = 1; message N { int32 a = 1; } } message O { int32 a = 1; }"))
    (decoded,) = rows(decode, b"\0\0\0\0\1" + index + b"\x08\x05")
    assert decoded == ({"a": 5, "_sluice_wrong": False} if right else {"a": None, "_sluice_wrong": True})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("string a = 1;", STRANGE),
        ("N a = 1;", b"\x0a" + sized(STRANGE)),
        ("repeated N a = 1;", b"\x0a\0\x0a" + sized(STRANGE)),
        ("map<string, int32> a = 1;", b"\x0a" + sized(b"\x0a\x01a\x10\x01" + STRANGE)),
        ("map<string, N> a = 1;", b"\x0a" + sized(b"\x12" + sized(STRANGE))),
        ("google.protobuf.Int32Value a = 1;", b"\x0a" + sized(STRANGE)),
        ("google.protobuf.Timestamp a = 1;", b"\x0a" + sized(STRANGE)),
        ("confluent.type.Decimal a = 1;", b"\x0a" + sized(STRANGE)),
        ("google.protobuf.Struct a = 1;", b"\x0a" + sized(STRANGE)),
        ("google.protobuf.Struct a = 1;", b"\x0a" + sized(b"\x0a" + sized(STRANGE))),
        ("google.protobuf.ListValue a = 1;", b"\x0a" + sized(b"\x0a" + sized(STRANGE))),
        ("google.protobuf.Value a = 1;", b"\x0a" + sized(b"\x32" + sized(STRANGE))),
        ("google.protobuf.Empty e = 1; string a = 2;", STRANGE),
        ("google.protobuf.Empty e = 1; string a = 2;", b"\x0a" + sized(STRANGE)),
        ("repeated google.protobuf.Empty e = 1; string a = 2;", b"\x0a\0\x0a" + sized(STRANGE)),
        ("map<string, google.protobuf.Empty> e = 1; string a = 2;", b"\x0a" + sized(b"\x12" + sized(STRANGE))),
        ("map<string, google.protobuf.Empty> e = 1; string a = 2;", b"\x0a" + sized(STRANGE)),
    ],
)
def test_a_field_that_the_schema_does_not_have_is_wrong(field: str, body: bytes) -> None:
    schema = one(field, "message N { int32 x = 1; }")
    assert is_wrong(schema, body)


@pytest.mark.spark
def test_columns_of_a_proto2_schema() -> None:
    schema = proto(
        "message M { required int32 a = 1; optional string b = 2; optional int32 c = 3 [default = 7]; optional E d = 4;"
        ' repeated E e = 5; optional E f = 6 [default = Y]; map<string, E> g = 7; optional string h = 8 [default = "hä"];'
        " optional bytes i = 9; repeated string j = 10; map<string, N> k = 11; optional N l = 12; }"
        " enum E { X = 0; Y = 2; } message N { required string z = 1; }",
        'syntax = "proto2";',
    )
    absent: dict[str, Any] = {
        "b": None,
        "c": 7,
        "d": None,
        "e": [],
        "f": "Y",
        "g": {},
        "h": "hä",
        "i": None,
        "j": [],
        "k": {},
        "l": None,
    }
    assert row(schema, b"\x08\x01") == {"a": 1, **absent}
    assert row(schema, written(schema)(a=1, b="", c=0, d="X", e=["Y"], g={"q": "Y"}))["g"] == {"q": "Y"}
    decode = using(schema)
    text = b"\x08\x01"
    bad = [
        b"",  # a required field is missing
        text + b"\x20\x01",  # an enum of proto2 has no other numbers
        text + b"\x28\x01",
        text + b"\x3a\x05\x0a\x01a\x10\x01",
        text + b"\x12\x01\xff",  # not UTF-8
        text + b"\x52\x01a\x52\x01\xff",
        text + b"\x3a\x05\x0a\x01\xff\x10\0",
        text + b"\x62\0",  # in the message the required field is missing
        text + b"\x5a\x02\x12\0",
    ]
    assert [decoded["_sluice_wrong"] for decoded in rows(decode, *map(framed, bad), framed(text))] == [True] * len(bad) + [False]
    assert row(schema, text + b"\x3a\x03\x0a\x01a")["g"] == {"a": "X"}  # an entry without a value has the default


@pytest.mark.spark
def test_columns_of_a_schema_with_editions() -> None:
    schema = proto(
        "message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; int32 c = 3 [default = 5]; E d = 4;"
        " int32 e = 5 [features.field_presence = LEGACY_REQUIRED]; string f = 6 [features.utf8_validation = NONE]; }"
        " enum E { option features.enum_type = CLOSED; X = 1; }",
        'edition = "2023";',
    )
    assert row(schema, b"\x28\0") == {"a": None, "b": 0, "c": 5, "d": None, "e": 0, "f": None}
    assert is_wrong_all(schema, [b"", b"\x28\0\x20\x02", b"\x28\0\x32\x01\xff"])


@pytest.mark.spark
def test_names_of_enums() -> None:
    schema = one(
        "E a = 1;", "enum E { option allow_alias = true; A = 0; B = 1; ALSO_B = 1; BIG = 2147483647; LOW = -2147483648; }"
    )
    assert [row(schema, written(schema)(a=n))["a"] for n in (1, 2**31 - 1, -(2**31), 3)] == ["B", "BIG", "LOW", "3"]


@pytest.mark.spark
def test_what_holds_nothing_is_left_out() -> None:
    schema = one("int32 a = 1; google.protobuf.Empty b = 2; N c = 3; repeated N d = 4; map<string, O> e = 5; N.P f = 6;",
                 "message N { message P { int32 x = 1; } } message O { N n = 1; }")  # fmt: skip
    assert types(schema) == {"a": "int", "f": "struct<x:int>"}
    message = written(schema)(a=1, b={}, c={}, d=[{}], e={"k": {"n": {}}})
    assert row(schema, message) == {"a": 1, "f": None}


def test_what_is_said_of_fields() -> None:
    schema = Schema("PROTOBUF", """syntax = "proto3";
import "confluent/meta.proto";
// The message.
message M {
  // How warm
  // it is.
  double heat = 5;
  int32 plain = 3;
  In in = 7;
  string said = 8 [(confluent.field_meta) = {doc: "by Confluent's way"}];
  message In {
    /* Inside. */ bool x = 2;
  }
}
""")  # fmt: skip
    inside = ColumnShape("x", parse("boolean"), "Inside.", number=2)
    assert shapes(schema) == (
        ColumnShape("heat", parse("double"), "How warm it is.", number=5),
        ColumnShape("plain", parse("int"), number=3),
        ColumnShape("in", Struct((Field("x", parse("boolean")),)), number=7, inside=(inside,)),
        ColumnShape("said", parse("string"), "by Confluent's way", number=8),
    )


@pytest.mark.spark
def test_references_are_imports() -> None:
    deepest = Schema("PROTOBUF", 'syntax = "proto2"; package deep; message D { optional int32 d = 1 [default = 3]; }')
    deep = Schema("PROTOBUF", 'syntax = "proto3"; package mid; import public "x/deep.proto"; message C { deep.D d = 1; }')
    behind = (
        ("x/deep.proto", deepest),
        ("a/b/mid.proto", deep),
        ("google/protobuf/timestamp.proto", Schema("PROTOBUF", "nonsense")),
    )
    schema = Schema("PROTOBUF", 'syntax = "proto3"; package top; import "a/b/mid.proto"; message M { mid.C c = 1; deep.D d = 2; }',
                    behind)  # fmt: skip
    assert types(schema) == {"c": "struct<d:struct<d:int>>", "d": "struct<d:int>"}
    assert row(schema, b"\x0a\x02\x0a\0") == {"c": {"d": {"d": 3}}, "d": None}


@pytest.mark.spark
def test_two_schemas_have_the_same_names_in_one_process() -> None:
    int_schema, text_schema = one("N a = 1;", "message N { int32 x = 1; }"), one("N a = 1;", "message N { string x = 1; }")
    assert row(int_schema, written(int_schema)(a={"x": 1})) == {"a": {"x": 1}}
    assert row(text_schema, written(text_schema)(a={"x": "1"})) == {"a": {"x": "1"}}


DEEP = "".join(f"message M{n} {{ repeated M{n + 1} m = 1; }} " for n in range(30)) + "message M30 { int32 x = 1; }"
WIDE = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }} " for n in range(20)) + "message M20 { int32 x = 1; }"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (one("M m = 1;"), "the message `M` contains itself"),
        (one("map<string, N> m = 1;", "message N { repeated M m = 1; }"), "the message `M` contains itself"),
        (proto("message M { optional group G = 1 { optional int32 x = 1; } }", 'syntax = "proto2";'), "`M.g` is a group"),
        (
            proto(
                "message N { int32 x = 1; } message M { N n = 1 [features.message_encoding = DELIMITED]; }", 'edition = "2023";'
            ),
            None,
        ),
        (
            proto(
                "message M { N n = 1 [features.message_encoding = DELIMITED]; } message N { int32 x = 1; }", 'edition = "2023";'
            ),
            "`M.n` is a group",
        ),
        (
            proto("message M { optional int32 x = 1; extensions 5; } extend M { optional int32 y = 5; }", 'syntax = "proto2";'),
            "the schema extends the message `M`",
        ),
        (one("int32 a = 1; int32 A = 2;"), "`a` and `A` of `M` differ only in case"),
        (one("google.protobuf.Empty a = 1;"), "the message `M` has no fields"),
        (
            one('confluent.type.Decimal a = 1 [(confluent.field_meta) = {params: [{key: "precision", value: "39"}]}];'),
            "`M.a`: there is no decimal(39,0): a decimal has 1 to 38 digits",
        ),
        (
            one('confluent.type.Decimal a = 1 [(confluent.field_meta) = {params: [{key: "scale", value: "x"}]}];'),
            "`M.a`: `precision` and `scale` are no numbers",
        ),
        (proto("enum E { A = 0; }"), "the schema has no message type"),
        (Schema("PROTOBUF", ""), "the schema has no message type"),
        (
            Schema("PROTOBUF", "nonsense"),
            'protoc cannot compile it: schema.proto:1:1: Expected top-level statement (e.g. "message")',
        ),
        (
            Schema("PROTOBUF", 'import "x/y.proto"; message M {}'),
            'protoc cannot compile it: x/y.proto: File not found; schema.proto:1:1: Import "x/y.proto" was not found or had errors',
        ),
        (one("Q q = 1;"), "protoc cannot compile it: schema.proto:1:"),
        (Schema("PROTOBUF", "CgF4IgMKAU0="), "the schema is a compiled descriptor in base64, not the text of a .proto file"),
        (proto("message M {}", other=Schema("AVRO", "{}")), "it refers to `other.proto`, which is AVRO, not Protobuf"),
        (
            Schema("PROTOBUF", "", (("../../x.proto", Schema("PROTOBUF", "")),)),
            "it refers to `../../x.proto`, which cannot be the name of a file",
        ),
        (
            Schema("PROTOBUF", "", (("/x.proto", Schema("PROTOBUF", "")),)),
            "it refers to `/x.proto`, which cannot be the name of a file",
        ),
        (
            Schema("PROTOBUF", "", (("a", Schema("PROTOBUF", "")), ("a/b", Schema("PROTOBUF", "")))),
            "it refers to `a/b`, which cannot be written as a file: ",
        ),
        (proto(DEEP), "is nested deeper than 32 levels"),
        (proto(WIDE), "it has more than 5,000 fields"),
    ],
)
def test_what_cannot_become_columns(schema: Schema, message: str | None, capfd: pytest.CaptureFixture[str]) -> None:
    if message is None:
        assert shapes(schema)
        return
    with pytest.raises(Unsupported) as error:
        shapes(schema)
    assert message in error.value.message
    assert "/tmp" not in error.value.message
    assert capfd.readouterr().err == ""


def unreadable(body: bytes) -> bool:
    """Returns whether Google's library rejects the message or finds unknown fields in it."""
    from google.protobuf.message import DecodeError

    try:
        message = written(EVERYTHING).FromString(body)
    except DecodeError:
        return True
    size = message.ByteSize()
    message.DiscardUnknownFields()
    return bool(message.ByteSize() != size)


@pytest.mark.spark
def test_a_message_cut_off_at_any_byte_is_wrong_or_ends_between_two_fields() -> None:
    whole = everything()
    cuts = [whole[:end] for end in range(len(whole) + 1)]
    decoded_rows = rows(using(EVERYTHING), *map(framed, cuts))
    right = [cut for cut, decoded in zip(cuts, decoded_rows, strict=True) if not decoded["_sluice_wrong"]]
    assert right == [cut for cut in cuts if not unreadable(cut)]
    assert len(right) == 20  # the empty one, and one behind each field and each of two items
    assert decoded_rows[-1]["by"] == {"7": {"x": 300, "y": ["a", "ü"], "z": {"k": Decimal(2**64 - 1)}}}


@pytest.mark.spark
@pytest.mark.slow
def test_messages_changed_at_random_are_right_or_wrong_and_never_an_error() -> None:
    chance = random.Random(20)
    whole, decode = everything(), using(EVERYTHING)
    bodies = [changed(chance, whole) for _ in range(20_000)]
    wrong = [decoded["_sluice_wrong"] for decoded in rows(decode, *map(framed, bodies))]
    assert [body for body, is_wrong in zip(bodies, wrong, strict=True) if not is_wrong and unreadable(body)] == []
    assert 5_000 < sum(wrong) < 19_000


@pytest.mark.spark
def test_hostile_messages_are_wrong() -> None:
    deep = b""
    for _ in range(10_000):  # a JSON value in lists in lists
        deep = b"\x32" + sized(b"\x0a" + sized(deep))
    deep_ok = b"\x08\0"
    for _ in range(40):
        deep_ok = b"\x32" + sized(b"\x0a" + sized(deep_ok))
    schema = one("google.protobuf.Value v = 1; string s = 2; repeated int32 n = 3; map<string, string> m = 4;")
    bad = [
        b"\x0a" + sized(deep),
        b"\x0b" * 1_000_000,  # groups in groups
        b"\x12\xff\xff\xff\xff\x07",  # 2 GB
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x12" + b"\xff" * 20,
        b"\x1a\xff\xff\xff\xff\x07\1",
        b"\x22\xff\xff\xff\xff\x07\x0a",
        b"\0\0",  # no field has the number 0
        b"\x0f\1",
    ]
    assert is_wrong_all(schema, bad)
    assert row(schema, b"\x0a" + sized(deep_ok))["v"] == "[" * 40 + "null" + "]" * 40


@pytest.mark.spark
def test_plain_values_become_messages() -> None:
    value: Mapping[str, Any] = {
        "id": "-9223372036854775808", "name": "näme", "heat": Decimal("0.5"), "ok": None, "n": {"x": 1, "y": ["a"], "z": {"k": 2**64 - 1}},
        "all": [{"x": 1}], "by": {"7": {"x": 2}}, "at": "2026-11-21T10:20:30.123Z", "any": '{"a":[1,null]}', "cost": Decimal("-12.340"),
        "e": "7", "day": "2024-02-29", "left": "l", "numbers": [Decimal(1), 2], "wrapped": "w", "big": Decimal(2**64 - 1), "raw": "AP8=",
        "took": -1_500_000,
    }  # fmt: skip
    (decoded,) = rows(using(EVERYTHING), b"\0\0\0\0\1" + encoder(EVERYTHING)(value))
    empty: dict[str, Any] = {"y": [], "z": {}}
    assert decoded == {
        "id": -(2**63), "name": "näme", "heat": 0.5, "ok": None, "n": {"x": 1, "y": ["a"], "z": {"k": Decimal(2**64 - 1)}},
        "all": [{"x": 1, **empty}], "by": {"7": {"x": 2, **empty}}, "at": datetime(2026, 11, 21, 10, 20, 30, 123_000, UTC),
        "any": '{"a":[1,null]}', "cost": Decimal("-12.34"), "e": "7", "day": date(2024, 2, 29), "left": "l", "right": None,
        "numbers": [1, 2], "wrapped": "w", "big": Decimal(2**64 - 1), "raw": b"\0\xff", "took": -1_500_000, "_sluice_wrong": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"other": 1}, 'has no field named "other"'),
        ({"numbers": [2**31]}, "Value out of range"),
        ({"day": "2024-2-29"}, "'2024-2-29' does not fit `day`"),
        ({"cost": "NaN"}, "'NaN' is not a number for `cost`"),
        ({"cost": "1e2000000000"}, "'1e2000000000' is not a number for `cost`"),
        ({"cost": "much"}, "'much' is not a number for `cost`"),
        ({"at": "today"}, "Failed to parse at field"),
        ({"any": "{"}, "Expecting property name"),
    ],
)
def test_values_that_do_not_fit_are_said(value: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        encoder(EVERYTHING)(value)
    assert message in str(error.value)


@pytest.mark.spark
def test_a_schema_for_columns() -> None:
    columns = [
        *("a boolean", "b tinyint", "c int", "d bigint", "e float", "f double", "g string", "h binary", "i date", "j timestamp"),
        *("k decimal(10,2)", "l array<decimal(5,0)>", "m map<string,struct<x:int,i_n:struct<y:date>>>", "M_ struct<q:int>"),
        *("message struct<message:string>", "n map<bigint,string>", "google string", "o array<struct<p:array<int>>>"),
    ]
    fields = [Field(name, parse(type_)) for name, _, type_ in (column.partition(" ") for column in columns)]
    schema = Schema("PROTOBUF", schema_text("shop.orders-v1", fields))
    assert "message ShopOrdersV1 {" in schema.text
    expected = {field.name: str(field.type) for field in fields} | {"b": "int", "n": "map<string,string>"}
    assert types(schema) == expected
    value = {"a": False, "i": "2024-02-29", "k": Decimal("1.5"), "l": [1], "m": {"k": {"i_n": {"y": "0001-01-01"}}}, "google": "",
             "message": {"message": "x"}}  # fmt: skip
    (decoded,) = rows(using(schema), b"\0\0\0\0\1" + encoder(schema)(value))
    assert decoded["_sluice_wrong"] is False
    assert (decoded["a"], decoded["c"], decoded["google"], decoded["k"]) == (False, None, "", Decimal("1.50"))
    assert decoded["m"] == {"k": {"x": None, "i_n": {"y": date(1, 1, 1)}}}
    with pytest.raises(ValueError, match=r"1\.234 has more than the 2 decimal places of `k`"):
        encoder(schema)({"k": "1.234"})


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("a array<array<int>>", "`a` is array<array<int>>, which Protobuf does not have"),
        ("a map<date,int>", "`a` is map<date,int>, which Protobuf does not have"),
        ("a timestamp_ntz", "`a` is timestamp_ntz, which Protobuf does not have"),
        ("wärme int", "`wärme` cannot be a field of a Protobuf message"),
    ],
)
def test_columns_that_protobuf_does_not_have(column: str, message: str) -> None:
    name, _, type_ = column.partition(" ")
    with pytest.raises(Unsupported) as error:
        schema_text("t", [Field(name, parse(type_))])
    assert error.value.message == message
