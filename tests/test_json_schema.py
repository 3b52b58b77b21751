"""JSON Schema: which columns a schema's text makes, what versions make together, and what is written by it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base import type_text, types
from framework.base.errors import Where
from framework.messages.encoding import confluent_frame, decoder
from framework.messages.formats import json_schema
from framework.messages.schemas.versions import Merged, Unsupported, merge
from framework.operations.trials.trial import Outcome, Trials
from framework.plan import Example, Message, Of
from framework.plan.schema import Schema, Version
from tests.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json = Any
CONNECT = "org.apache.kafka.connect.data."
DECIMAL = {
    "type": "number", "title": f"{CONNECT}Decimal", "connect.type": "bytes",
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
}  # fmt: skip


def schema(said: Json, **references: Json) -> Schema:
    return Schema("JSON", json.dumps(said), tuple((name, schema(each)) for name, each in references.items()))


def of(**properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties}


def columns(said: Json, **references: Json) -> dict[str, str]:
    return {shape.name: str(shape.type) for shape in json_schema.shapes(schema(said, **references))}


TYPES: list[tuple[Json, str]] = [
    ({"type": "string"}, "string"),
    ({"type": "string", "maxLength": 3, "pattern": "a"}, "string"),
    ({"type": "string", "format": "date"}, "date"),
    ({"type": "string", "format": "date-time"}, "timestamp"),
    ({"type": "string", "format": "time"}, "string"),
    ({"type": "string", "format": "uuid"}, "string"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": "string", "connect.type": "bytes"}, "binary"),
    ({"type": "string", "title": "io.debezium.time.ZonedTimestamp"}, "timestamp"),
    ({"type": "integer"}, "bigint"),
    ({"type": "integer", "maximum": 9}, "bigint"),
    ({"type": "integer", "format": "int64"}, "bigint"),
    ({"type": "integer", "format": "int32"}, "int"),
    ({"type": "integer", "connect.type": "int64"}, "bigint"),
    ({"type": "integer", "connect.type": "int32"}, "int"),
    ({"type": "integer", "connect.type": "int16"}, "int"),
    ({"type": "integer", "connect.type": "int8"}, "int"),
    ({"type": "integer", "connect.type": "int32", "title": f"{CONNECT}Date"}, "date"),
    ({"type": "integer", "connect.type": "int64", "title": f"{CONNECT}Timestamp"}, "timestamp"),
    ({"type": "integer", "connect.type": "int32", "title": f"{CONNECT}Time"}, "int"),
    ({"type": "integer", "connect.type": "int64", "title": "io.debezium.time.MicroTimestamp"}, "timestamp"),
    ({"type": "integer", "connect.type": "int64", "title": "io.debezium.time.Timestamp"}, "timestamp"),
    ({"type": "integer", "connect.type": "int32", "title": "io.debezium.time.Date"}, "date"),
    ({"type": "integer", "connect.type": "int64", "title": "io.debezium.time.NanoTimestamp"}, "bigint"),
    ({"type": "number"}, "double"),
    ({"type": "number", "connect.type": "float64"}, "double"),
    ({"type": "number", "connect.type": "float32"}, "float"),
    (DECIMAL, "decimal(10,2)"),
    ({**DECIMAL, "connect.parameters": {"scale": "4"}}, "decimal(38,4)"),
    ({**DECIMAL, "connect.parameters": {"scale": "50"}}, "binary"),
    ({"type": "boolean"}, "boolean"),
    (of(a={"type": "string"}, b=of(c={"type": "integer"})), "struct<a:string,b:struct<c:bigint>>"),
    ({"properties": {"a": {"type": "string"}}}, "struct<a:string>"),
    ({**of(a={"type": "string"}), "additionalProperties": {"type": "integer"}}, "struct<a:string>"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
    ({"type": "object", "additionalProperties": of(a={"type": "number"})}, "map<string,struct<a:double>>"),
    ({"type": "object", "patternProperties": {"^x": {"type": "boolean"}}, "additionalProperties": False}, "map<string,boolean>"),
    ({"type": "object", "patternProperties": {"^x": {"type": "boolean"}}}, "map<string,string>"),  # other names may have anything
    ({"type": "object", "patternProperties": {"x": {"type": "integer"}}, "additionalProperties": {"type": "number"}}, "map<string,double>"),
    ({"type": "object"}, "string"),
    ({"type": "object", "additionalProperties": True}, "string"),
    ({"type": "array", "items": {"type": "string", "format": "date"}}, "array<date>"),
    ({"type": "array", "items": of(a={"type": "integer"})}, "array<struct<a:bigint>>"),
    ({"items": {"type": "array", "items": {"type": "number"}}}, "array<array<double>>"),
    ({"type": "array"}, "array<string>"),
    ({"type": "array", "items": [{"type": "number"}, {"type": "number"}]}, "array<string>"),  # a third may be anything
    ({"type": "array", "items": [{"type": "number"}, {"type": "number"}], "maxItems": 2}, "array<double>"),
    ({"type": "array", "items": [{"type": "number"}, {"type": "number"}], "maxItems": 3}, "array<string>"),
    ({"type": "array", "items": [{"type": "number"}], "additionalItems": False}, "array<double>"),
    ({"type": "array", "items": [{"type": "number"}], "additionalItems": {"type": "integer"}}, "array<double>"),
    ({"type": "array", "items": [{"type": "number"}], "additionalItems": {"type": "string"}}, "array<string>"),
    ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": False}, "array<string>"),
    ({"type": "array", "prefixItems": [{"type": "number"}], "items": False}, "array<double>"),
    ({"type": "array", "prefixItems": [{"type": "number"}]}, "array<string>"),
    ({"type": "array", "items": []}, "array<string>"),
    ({"enum": ["a", "b", None]}, "string"),
    ({"enum": [1, 2]}, "bigint"),
    ({"enum": [1, 2.5]}, "double"),
    ({"enum": [True]}, "boolean"),
    ({"enum": [1, "a"]}, "string"),
    ({"type": "string", "enum": ["a"]}, "string"),
    ({"const": "a"}, "string"),
    ({"const": 7}, "bigint"),
    ({"type": ["integer", "null"]}, "bigint"),
    ({"type": ["null", "array"], "items": {"type": "integer"}}, "array<bigint>"),
    ({"type": ["integer", "number"]}, "double"),
    ({"type": ["integer", "string"]}, "string"),
    ({"type": "null"}, "string"),
    ({"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}]}, "int"),
    ({"anyOf": [of(a={"type": "string"}), {"type": "null"}]}, "struct<a:string>"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "string"),
    ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "double"),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "string"),
    ({"oneOf": [of(a={"type": "string"}), of(b={"type": "string"})]}, "string"),
    ({"oneOf": [of(a={"type": "string"}), of(a={"type": "string"})]}, "struct<a:string>"),
    ({"type": "object", "oneOf": [of(a={"type": "string"}), of(b={"type": "number"})]}, "struct<a:string,b:double>"),
    ({**of(a={"type": "string"}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "struct<a:string>"),
    ({"allOf": [of(a={"type": "string"}), of(b={"type": "number"})]}, "struct<a:string,b:double>"),
    ({"allOf": [of(a={}), of(a={"type": "integer"})]}, "struct<a:bigint>"),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "string"),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "bigint"),
    ({}, "string"),
    (True, "string"),
    ({"description": "anything"}, "string"),
    ({"minimum": 5}, "string"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "type_"), TYPES, ids=lambda each: each if isinstance(each, str) else json.dumps(each)[:60])
def test_each_schema_has_its_type(said: Json, type_: str) -> None:
    assert columns(of(x=said)) == {"x": type_}
    if said is not True:
        type_text.parse(type_)  # a type that a table can have
        assert columns(of(x={"type": "array", "items": said})) == {"x": f"array<{type_}>"}


def test_columns_have_the_order_and_docs_of_the_schema() -> None:
    said = of(
        b={"type": "integer", "description": "How  many\nthere are", "title": "B"},
        a={"oneOf": [{"type": "null"}, {"type": "string", "description": "Which"}], "connect.index": 1},
        c={"type": "integer", "title": f"{CONNECT}Date", "connect.index": 0},
        d={"type": "boolean", "title": "Is it so"},
    )
    shapes = json_schema.shapes(schema(said))
    assert [(each.name, each.doc) for each in shapes] == [
        ("c", ""),
        ("a", "Which"),
        ("b", "How many there are"),
        ("d", "Is it so"),
    ]


def test_fields_inside_of_lists_and_maps_are_known() -> None:
    inner = of(at={"type": "string", "format": "date-time", "description": "When"})
    (shape,) = json_schema.shapes(schema(of(x={"type": "array", "items": {"type": "object", "additionalProperties": inner}})))
    assert [(each.name, str(each.type), each.doc) for each in shape.inside] == [("at", "timestamp", "When")]


ADDRESS = of(city={"type": "string"})
DRAFTS = ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema"]  # fmt: skip


@pytest.mark.parametrize("draft", DRAFTS)
def test_references_within_a_schema_are_followed(draft: str) -> None:
    id_ = "id" if "04" in draft else "$id"
    said = {
        "$schema": draft, id_: "http://example.com/order.json",
        "definitions": {"address": ADDRESS, "named": {id_: "http://example.com/named.json", **ADDRESS}},
        "$defs": {"a/b": ADDRESS},
        **of(
            one={"$ref": "#/definitions/address", "description": "Where to"},
            two={"$ref": "#/$defs/a~1b"},
            three={"$ref": "named.json"},
            four={"oneOf": [{"type": "null"}, {"$ref": "http://example.com/order.json#/definitions/address"}]},
        ),
    }  # fmt: skip
    assert columns(said) == dict.fromkeys(("one", "two", "three", "four"), "struct<city:string>")
    assert json_schema.shapes(schema(said))[0].doc == "Where to"


def test_what_stands_beside_a_reference() -> None:
    said = {"$defs": {"address": ADDRESS}, **of(x={"$ref": "#/$defs/address", "properties": {"zip": {"type": "string"}}})}
    assert columns(said) == {"x": "struct<city:string>"}
    assert columns({"$schema": DRAFTS[-1], **said}) == {"x": "struct<zip:string,city:string>"}
    assert columns({"$ref": "#/definitions/o", "definitions": {"o": ADDRESS}}) == {"city": "string"}


def test_references_to_other_subjects() -> None:
    other = {
        "address.json": of(city={"type": "string"}, country={"$ref": "country.json"}),
        "country.json": {"enum": ["DE", "FR"]},
    }
    expected = {"to": "struct<city:string,country:string>"}
    assert columns(of(to={"$ref": "address.json"}), **other) == expected
    assert columns({"$id": "http://example.com/shop/order.json", **of(to={"$ref": "address.json"})}, **other) == expected
    assert columns(of(to={"$ref": "http://example.com/shop/address.json"}), **other) == expected
    events = {"a": of(id={"type": "integer"}, n={"type": "string"}), "b": of(id={"type": "integer"}, m={"type": "number"})}
    assert columns({"oneOf": [{"$ref": "a"}, {"$ref": "b"}]}, **events) == {"id": "bigint", "n": "string", "m": "double"}


def test_a_single_value() -> None:
    assert columns({"type": "string"}) == columns({"type": ["null", "string"]}) == {"value": "string"}
    assert columns({"type": "string", "format": "date"}) == {"value": "date"}


REFUSED: list[tuple[str, Json, str]] = [
    ("anything", {}, "a message is no object, by its schema"),
    ("list", {"type": "array", "items": ADDRESS}, "a message is no object, by its schema"),
    ("map", {"type": "object", "additionalProperties": ADDRESS}, "a message has fields of any name, by its schema"),
    ("no fields", {"type": "object"}, "the schema names no fields"),
    ("recursive", of(x={"$ref": "#"}), "the schema contains itself"),
    ("deep", {"definitions": {"t": of(t={"type": "array", "items": {"$ref": "#/definitions/t"}})}, **of(x={"$ref": "#/definitions/t"})},
        "the schema contains itself"),
    ("lost", of(x={"$ref": "other.json"}), "the schema refers to `other.json`, which is not there"),
    ("lost inside", of(x={"$ref": "#/definitions/y"}), "the schema refers to `/definitions/y`, which is not there"),
    ("case", of(a={"type": "string"}, A={"type": "string"}), "`a` and `A` differ only in case"),
    ("case of another letter", of(**dict.fromkeys(("ſ", "s"), ADDRESS)), "`ſ` and `s` differ only in case"),
    ("no name", of(x=ADDRESS, **{"": ADDRESS}), "a property has no name"),
    ("number", 5, "the text is not a JSON Schema: it is neither an object nor a boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "message"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_a_schema_without_columns_is_refused(said: Json, message: str) -> None:
    with pytest.raises(Unsupported) as raised:
        json_schema.shapes(schema(said))
    assert raised.value.message == message
    assert raised.value.hint


@pytest.mark.slow
def test_texts_that_are_attacks() -> None:
    deep: Json = {"type": "string"}
    for _ in range(200):
        deep = of(a=deep)
    wide = {f"d{at}": of(**{name: {"$ref": f"#/definitions/d{at + 1}"} for name in "xyz"}) for at in range(25)}
    for said in (deep, {"definitions": {**wide, "d25": ADDRESS}, "$ref": "#/definitions/d0"}):
        with pytest.raises(Unsupported):
            json_schema.shapes(schema(said))
    for text in ("{", "", "[" * 100_000, '{"a":' * 100_000, '{"$id": [], "properties": {"\\ud800": {}}}', "NaN"):
        with pytest.raises(Unsupported):
            json_schema.shapes(Schema("JSON", text))


ALL_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")


@pytest.mark.parametrize("draft", ALL_DRAFTS)
@pytest.mark.parametrize("ref", ["#/definitions/A", "http://example.com/root.json#/definitions/A"])
def test_a_root_that_refers_to_its_own_definitions(draft: str, ref: str) -> None:
    name = "id" if draft in ALL_DRAFTS[:2] else "$id"
    for end in ("", "#"):
        root = {name: f"http://example.com/root.json{end}", "$schema": f"http://json-schema.org/{draft}/schema#", "$ref": ref}
        assert columns({**root, "definitions": {"A": of(a={"type": "integer"})}}) == {"a": "bigint"}


OTHER_FORMS: list[tuple[Json, str]] = [
    ({"enum": [[1], [2]]}, "array<string>"), ({"enum": [{"$id": 5, "$ref": [1]}]}, "string"), ({"enum": 5}, "string"),
    ({"const": [1]}, "array<string>"), ({"const": {"properties": [1]}}, "string"), ({"enum": []}, "string"),
    ({"type": "integer", "default": [1], "examples": [[1]]}, "bigint"), ([{"type": "integer"}], "string"), (None, "string"),
    ({"anyOf": {"type": "integer"}}, "string"), ({"anyOf": [[1]]}, "string"), ({"type": [["x"]]}, "string"),
    ({"type": "integer", "definitions": [{"type": "x"}]}, "bigint"), ({"type": "integer", "not": [1], "if": [1]}, "bigint"),
    ({"type": "integer", "dependencies": {"x": ["y"], "z": "y"}}, "bigint"), ({"type": "integer", "$id": ["x"]}, "bigint"),
    ({"type": "integer", "$id": "http://[::1"}, "bigint"), ({"type": "integer", "$anchor": 5, "$schema": 5}, "bigint"),
    ({"type": "array", "items": [{"type": "integer"}], "maxItems": 1}, "array<bigint>"), ({"properties": [1]}, "string"),
    ({"type": "array", "prefixItems": {"x": 1}}, "array<string>"), ({"type": "integer", "extends": [1]}, "bigint"),
]  # fmt: skip


@pytest.mark.parametrize("draft", ALL_DRAFTS)
@pytest.mark.parametrize(("said", "type_"), OTHER_FORMS)
def test_a_keyword_in_a_form_that_json_schema_does_not_know_says_nothing(draft: str, said: Json, type_: str) -> None:
    whole = {"$schema": f"http://json-schema.org/{draft}/schema#", **of(a=said, b={"$ref": "#n"}, c={"$ref": "other"})}
    whole["definitions"] = {"n": {"type": "integer", "$id": "#n", "id": "#n"}, "m": {"type": "integer", "$anchor": "n"}}
    assert columns(whole, other=of(a=said)) == {"a": type_, "b": "bigint", "c": f"struct<a:{type_}>"}


@pytest.mark.parametrize("ref", ["http://[::1", "#/definitions/a/enum/0/x", "#/definitions/a/enum/9", "#/%ff", "#/~9", "\x00"])
def test_a_reference_that_cannot_be_followed_is_said_in_plain_words(ref: str) -> None:
    with pytest.raises(Unsupported) as error:
        json_schema.shapes(schema({**of(a={"$ref": ref}), "definitions": {"a": {"enum": [[1]]}}}))
    assert not re.search("object|attribute|index|NoneType", error.value.message)


def merged(*texts: Json) -> Merged:
    made = [Version(number + 100, schema(said), number) for number, said in enumerate(texts, 1)]
    return merge((version, json_schema.shapes(version.schema)) for version in made)


def test_a_description_of_half_a_character_is_readable() -> None:
    (shape,) = json_schema.shapes(schema(of(a={"type": "string", "description": "x\ud800"})))
    assert shape.doc == "x?"


def test_versions_are_merged_into_columns() -> None:
    found = merged(
        of(id={"type": "integer", "format": "int32"}, place=of(city={"type": "string"})),
        of(
            id={"type": "integer"},
            place=of(city={"type": "string"}, zip={"type": "string"}),
            at={"type": "string", "format": "date"},
        ),
        of(id={"type": "string"}),
        of(at={"type": ["string", "null"], "format": "date", "description": "The day"}),
    )
    assert [(each.name, str(each.type), each.doc) for each in found.shapes] == [
        ("id", "bigint", ""), ("place", "struct<city:string,zip:string>", ""), ("at", "date", "The day"),
    ]  # fmt: skip
    assert [fit.version.number for fit in found.fits] == [1, 2, 4]
    assert [str(difference) for difference in found.differences] == [
        "schema 103 (version 3) has `id` as string, and before it was bigint"
    ]


def test_a_time_that_a_version_writes_otherwise() -> None:
    day = {"type": "string", "format": "date"}
    days = {"type": "integer", "title": f"{CONNECT}Date"}
    read = json_schema.read("value", merged(of(x=of(day=day)), of(x=of(day=day), n=days), of(x=of(day=days)), of(n=days)))
    why = "schema 103 (version 3) writes `x.day` as a number of days, and before it was text"
    assert read.writers[103] == {"refused": why, "code": "undecodable"}


COLUMNS = {
    "id": "bigint", "n": "int", "s": "string", "b": "boolean", "d": "double", "f": "float", "price": "decimal(18,2)", "at": "timestamp",
    "day": "date", "raw": "binary", "tags": "array<string>", "more": "map<string,double>", "place": "struct<city:string,at:timestamp>",
}  # fmt: skip


def fields(columns: Mapping[str, str]) -> list[types.Field]:
    return [types.Field(name, type_text.parse(type_)) for name, type_ in columns.items()]


def test_the_text_of_a_schema_makes_its_columns() -> None:
    text = json_schema.schema_text("orders", fields(COLUMNS))
    assert columns(json.loads(text)) == COLUMNS
    assert json.loads(text)["title"] == "orders"
    narrow = json_schema.schema_text("n", fields({"a": "tinyint", "b": "smallint", "c": "timestamp_ntz"}))
    assert columns(json.loads(narrow)) == {"a": "int", "b": "int", "c": "string"}


def test_each_value_is_written_as_the_schema_says() -> None:
    encode = json_schema.encoder(Schema("JSON", json_schema.schema_text("orders", fields(COLUMNS))))
    row = {
        "id": 1, "s": "日本", "price": Decimal("12.50"), "at": datetime(2026, 1, 5, 10, tzinfo=timezone.utc), "day": date(2026, 1, 5),
        "raw": b"ab", "tags": ["x", None], "more": {"a": 1.5}, "place": {"city": None}, "b": None,
    }  # fmt: skip
    assert encode(row).decode() == (
        '{"id": 1, "s": "日本", "price": 12.50, "at": "2026-01-05T10:00:00+00:00", "day": "2026-01-05", "raw": "YWI=",'
        ' "tags": ["x", null], "more": {"a": 1.5}, "place": {"city": null}, "b": null}'
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"id": "x"}, "`id`: 'x' is not of type 'integer', 'null'"),
        ({"tags": ["a", 5]}, "`tags.1`: 5 is not of type 'string', 'null'"),
        ({"day": "soon"}, "`day`: 'soon' is not a 'date'"),
    ],
)
def test_what_does_not_fit_is_not_written(value: Json, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        json_schema.encoder(Schema("JSON", json_schema.schema_text("orders", fields(COLUMNS))))(value)


def test_what_is_written_by_a_schema_with_references() -> None:
    encode = json_schema.encoder(schema({**of(to={"$ref": "address.json"}), "required": ["to"]}, **{"address.json": ADDRESS}))
    assert encode({"to": {"city": "Bonn"}}) == b'{"to": {"city": "Bonn"}}'
    for value, message in (({"to": {"city": 5}}, "`to.city`: 5 is not of type 'string'"), ({}, "'to' is a required property")):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            encode(value)


def run(spark: SparkSession, lake: Path, found: Merged, values: list[bytes], keys: list[bytes | None] | None = None) -> Outcome:
    """As a topic whose values (or keys) have the schemas of a registry."""
    of_: Of = "value" if keys is None else "key"
    columns = [(each.name, decoder.column_sql(of_, each.name)) for each in found.shapes]
    made = confluent_frame.decoding(of_, found, json_schema.read(of_, found), columns, (), absent=(77,))
    said = ", ".join(f'"{each.name}": "{each.type.sql}"' for each in found.shapes)
    plan = plan_for(
        lake,
        "127.0.0.1:1",
        f"""
topic: t
value: json
columns: {{{said}}}
---
pipeline: t
from: {{topic: t}}
into: {{table: n{uuid.uuid4().hex}.t}}
""",
    )
    (topic,) = plan.pipelines[0].topics
    pipeline = replace(plan.pipelines[0], topics=(replace(topic, decoding=made),))
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    given = tuple(
        Message(batch=1, topic="t", partition=0, offset=at, timestamp=start, key=key, value=value)
        for at, (key, value) in enumerate(zip(keys or [None] * len(values), values, strict=True))
    )
    outcome = Trials(spark, plan).run(
        pipeline, Example(name="messages", where=Where("", 0, 0), given=given, expect=None, expect_bad=())
    )
    assert outcome.error is None
    return outcome


def message(number: int, said: Json) -> bytes:
    return bytes([0, 0, 0, 0, number]) + (said if isinstance(said, bytes) else json.dumps(said, ensure_ascii=False).encode())


def without_kafka(outcome: Outcome) -> list[dict[str, Any]]:
    rows = sorted(outcome.rows, key=lambda row: int(row["_kafka_offset"]))
    return [
        {name: value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value for name, value in row.items()
         if value is not None and not name.startswith("_kafka_")}
        for row in rows
    ]  # fmt: skip


DAY = {"type": "integer", "title": f"{CONNECT}Date"}


@pytest.mark.spark
def test_messages_of_several_versions(spark: SparkSession, lake: Path) -> None:
    one = of(id={"type": "integer", "format": "int32"}, price=DECIMAL, x=of(days={"type": "array", "items": DAY}), either={})
    two = of(id={"type": "integer"}, at={"type": "string", "format": "date-time"}, raw={"type": "string", "contentEncoding": "base64"},
             more={"type": "object", "additionalProperties": DECIMAL})  # fmt: skip
    three = of(x=of(days={"type": "array", "items": {"type": "string", "format": "date"}}))
    found = merged(one, two, three)
    good: list[tuple[bytes, dict[str, Any]]] = [
        (message(101, {"id": 1, "price": "MDk=", "x": {"days": [0, None, -1]}, "either": {"a": [1, "}"]}, "other": 5}),
         {"id": 1, "price": Decimal("123.45"), "x": {"days": [date(1970, 1, 1), None, date(1969, 12, 31)]}, "either": '{"a": [1, "}"]}'}),
        (message(102, {"id": 2**40, "at": "2026-01-05T10:00:00Z", "raw": "YWI=", "more": {"a": 1.5, "b": "/w=="}}),
         {"id": 2**40, "at": datetime(2026, 1, 5, 10, tzinfo=timezone.utc), "raw": b"ab",
          "more": [("a", Decimal("1.50")), ("b", Decimal("-0.01"))]}),
        (message(102, {}), {}),
        (message(102, {"id": None, "price": None, "x": None, "more": {}}), {"more": []}),
        (message(101, b' {"id":3,"id":4}\n'), {"id": 4}),
        (message(101, {"either": "日本"}), {"either": "日本"}),
    ]  # fmt: skip
    bad: list[tuple[bytes, str]] = [
        (message(101, {"id": "1"}), 'field `id`: wanted bigint, found "1"'),
        (message(101, {"id": 1.5}), "field `id`: wanted bigint, found 1.5"),
        (message(101, {"x": {"days": ["2026-01-01"]}}), 'field `x.days[0]`: wanted date (epoch_days), found "2026-01-01"'),
        (message(102, {"at": "10:00"}), 'field `at`: wanted timestamp, found "10:00"'),
        (message(102, {"more": {"a": "?"}}), 'field `more.a`: wanted decimal(10,2) (base64), found "?"'),
        (message(103, {"x": {"days": []}}), "schema 103 (version 3) writes `x.days` as text, and before it was a number of days"),
        (message(101, [1]), "the value is not a JSON object but a list"),
        (message(101, b""), "the value is empty"),
        (message(101, b"\xff"), "the value is not JSON: the byte 0xFF is not expected at byte 5"),
        (message(101, b'{"id":1} {"id":2}'), "more text follows the JSON object at byte 14"),
        (message(101, b'{"id":1}]'), "more text follows the JSON object at byte 13"),
        (message(101, b"{'id':1}"), "the value is not JSON: `'` is not expected at byte 6"),
        (message(101, b'{"id":'), "field `id`: the value is not JSON: it is cut off"),
        (message(77, {"id": 1}), "the registry has no schema 77"),
        (b'{"id":1}', "the value does not begin with the id of a schema"),
    ]
    outcome = run(spark, lake, found, [given for given, _ in (*good, *bad)])
    assert without_kafka(outcome) == [row for _, row in good]
    said = {each["offset"] - len(good): each["message"] for each in outcome.bad}
    assert [said[at] for at in sorted(said)] == [text for _, text in bad]


@pytest.mark.spark
def test_keys_are_read_by_their_schema(spark: SparkSession, lake: Path) -> None:
    keys = [message(101, {"id": 1, "day": 20460}), None, message(101, {"id": "1"}), message(101, b"x"), b""]
    outcome = run(spark, lake, merged(of(id={"type": "integer"}, day=DAY)), [b"any"] * len(keys), keys)
    assert without_kafka(outcome) == [{"id": 1, "day": date(2026, 1, 7)}, {}]
    assert sorted((each["offset"], each["stage"], each["code"], each["message"]) for each in outcome.bad) == [
        (2, "key", "undecodable_key", 'field `id`: wanted bigint, found "1"'),
        (3, "key", "undecodable_key", "the key is not JSON: `x` is not expected at byte 5"),
        (4, "key", "undecodable_key", "the key does not begin with the id of a schema"),
    ]


@pytest.mark.spark
def test_a_whole_number_is_an_integer_however_it_is_written(spark: SparkSession, lake: Path) -> None:
    outcome = run(spark, lake, merged(of(id={"type": "integer"})), [message(101, b'{"id":1.0}'), message(101, b'{"id":1e2}')])
    assert without_kafka(outcome) == [{"id": 1}, {"id": 100}]
