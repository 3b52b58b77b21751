"""JSON Schema: the columns of a schema's text, the columns of several versions together, and values that are written by it."""

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
from framework.plan import Message, MessagePart, SpecTest, Topics
from framework.plan.schema import Schema, Version
from tests.support.json_schema_types import CONNECT, DECIMAL, TYPES, Json, record
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def schema(body: Json, **references: Json) -> Schema:
    return Schema("JSON", json.dumps(body), tuple((name, schema(referred)) for name, referred in references.items()))


def columns(body: Json, **references: Json) -> dict[str, str]:
    return {shape.name: str(shape.type) for shape in json_schema.shapes(schema(body, **references))}


@pytest.mark.parametrize(("body", "type_"), TYPES, ids=lambda value: value if isinstance(value, str) else json.dumps(value)[:60])
def test_each_schema_has_its_type(body: Json, type_: str) -> None:
    assert columns(record(x=body)) == {"x": type_}
    if body is not True:
        type_text.parse(type_)  # a type that a table can have
        assert columns(record(x={"type": "array", "items": body})) == {"x": f"array<{type_}>"}


def test_columns_have_the_order_and_docs_of_the_schema() -> None:
    body = record(
        b={"type": "integer", "description": "How  many\nthere are", "title": "B"},
        a={"oneOf": [{"type": "null"}, {"type": "string", "description": "Which"}], "connect.index": 1},
        c={"type": "integer", "title": f"{CONNECT}Date", "connect.index": 0},
        d={"type": "boolean", "title": "Is it so"},
    )
    shapes = json_schema.shapes(schema(body))
    assert [(shape.name, shape.doc) for shape in shapes] == [
        ("c", ""),
        ("a", "Which"),
        ("b", "How many there are"),
        ("d", "Is it so"),
    ]


def test_fields_inside_of_lists_and_maps_are_known() -> None:
    inner = record(at={"type": "string", "format": "date-time", "description": "When"})
    (shape,) = json_schema.shapes(schema(record(x={"type": "array", "items": {"type": "object", "additionalProperties": inner}})))
    assert [(field.name, str(field.type), field.doc) for field in shape.inside] == [("at", "timestamp", "When")]


ADDRESS = record(city={"type": "string"})
DRAFTS = ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema"]  # fmt: skip


@pytest.mark.parametrize("draft", DRAFTS)
def test_references_within_a_schema_are_followed(draft: str) -> None:
    id_ = "id" if "04" in draft else "$id"
    body = {
        "$schema": draft, id_: "http://example.com/order.json",
        "definitions": {"address": ADDRESS, "named": {id_: "http://example.com/named.json", **ADDRESS}},
        "$defs": {"a/b": ADDRESS},
        **record(
            one={"$ref": "#/definitions/address", "description": "Where to"},
            two={"$ref": "#/$defs/a~1b"},
            three={"$ref": "named.json"},
            four={"oneOf": [{"type": "null"}, {"$ref": "http://example.com/order.json#/definitions/address"}]},
        ),
    }  # fmt: skip
    assert columns(body) == dict.fromkeys(("one", "two", "three", "four"), "struct<city:string>")
    assert json_schema.shapes(schema(body))[0].doc == "Where to"


def test_what_stands_beside_a_reference() -> None:
    body = {"$defs": {"address": ADDRESS}, **record(x={"$ref": "#/$defs/address", "properties": {"zip": {"type": "string"}}})}
    assert columns(body) == {"x": "struct<city:string>"}
    assert columns({"$schema": DRAFTS[-1], **body}) == {"x": "struct<zip:string,city:string>"}
    assert columns({"$ref": "#/definitions/o", "definitions": {"o": ADDRESS}}) == {"city": "string"}


def test_references_to_other_subjects() -> None:
    references = {
        "address.json": record(city={"type": "string"}, country={"$ref": "country.json"}),
        "country.json": {"enum": ["DE", "FR"]},
    }
    expected = {"to": "struct<city:string,country:string>"}
    assert columns(record(to={"$ref": "address.json"}), **references) == expected
    assert columns({"$id": "http://example.com/shop/order.json", **record(to={"$ref": "address.json"})}, **references) == expected
    assert columns(record(to={"$ref": "http://example.com/shop/address.json"}), **references) == expected
    events = {
        "a": record(id={"type": "integer"}, n={"type": "string"}),
        "b": record(id={"type": "integer"}, m={"type": "number"}),
    }
    assert columns({"oneOf": [{"$ref": "a"}, {"$ref": "b"}]}, **events) == {"id": "bigint", "n": "string", "m": "double"}


def test_a_single_value() -> None:
    assert columns({"type": "string"}) == columns({"type": ["null", "string"]}) == {"value": "string"}
    assert columns({"type": "string", "format": "date"}) == {"value": "date"}


REFUSED: list[tuple[str, Json, str]] = [
    ("anything", {}, "a message is no object, by its schema"),
    ("list", {"type": "array", "items": ADDRESS}, "a message is no object, by its schema"),
    ("map", {"type": "object", "additionalProperties": ADDRESS}, "a message has fields of any name, by its schema"),
    ("no fields", {"type": "object"}, "the schema names no fields"),
    ("recursive", record(x={"$ref": "#"}), "the schema contains itself"),
    ("deep",
        {"definitions": {"t": record(t={"type": "array", "items": {"$ref": "#/definitions/t"}})}, **record(x={"$ref": "#/definitions/t"})},
        "the schema contains itself"),
    ("lost", record(x={"$ref": "other.json"}), "the schema refers to `other.json`, which is not there"),
    ("lost inside", record(x={"$ref": "#/definitions/y"}), "the schema refers to `/definitions/y`, which is not there"),
    ("case", record(a={"type": "string"}, A={"type": "string"}), "`a` and `A` differ only in case"),
    ("case of another letter", record(**dict.fromkeys(("ſ", "s"), ADDRESS)), "`ſ` and `s` differ only in case"),
    ("no name", record(x=ADDRESS, **{"": ADDRESS}), "a property has no name"),
    ("number", 5, "the text is not a JSON Schema: it is neither an object nor a boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_schema_without_columns_is_refused(body: Json, message: str) -> None:
    with pytest.raises(Unsupported) as raised:
        json_schema.shapes(schema(body))
    assert raised.value.message == message
    assert raised.value.hint


@pytest.mark.slow
def test_texts_that_are_attacks() -> None:
    deep: Json = {"type": "string"}
    for _ in range(200):
        deep = record(a=deep)
    wide = {f"d{depth}": record(**{name: {"$ref": f"#/definitions/d{depth + 1}"} for name in "xyz"}) for depth in range(25)}
    for body in (deep, {"definitions": {**wide, "d25": ADDRESS}, "$ref": "#/definitions/d0"}):
        with pytest.raises(Unsupported):
            json_schema.shapes(schema(body))
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
        assert columns({**root, "definitions": {"A": record(a={"type": "integer"})}}) == {"a": "bigint"}


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
@pytest.mark.parametrize(("body", "type_"), OTHER_FORMS)
def test_a_keyword_in_a_form_that_json_schema_does_not_know_says_nothing(draft: str, body: Json, type_: str) -> None:
    whole = {"$schema": f"http://json-schema.org/{draft}/schema#", **record(a=body, b={"$ref": "#n"}, c={"$ref": "other"})}
    whole["definitions"] = {"n": {"type": "integer", "$id": "#n", "id": "#n"}, "m": {"type": "integer", "$anchor": "n"}}
    assert columns(whole, other=record(a=body)) == {"a": type_, "b": "bigint", "c": f"struct<a:{type_}>"}


@pytest.mark.parametrize("ref", ["http://[::1", "#/definitions/a/enum/0/x", "#/definitions/a/enum/9", "#/%ff", "#/~9", "\x00"])
def test_a_reference_that_cannot_be_followed_is_said_in_plain_words(ref: str) -> None:
    with pytest.raises(Unsupported) as error:
        json_schema.shapes(schema({**record(a={"$ref": ref}), "definitions": {"a": {"enum": [[1]]}}}))
    assert not re.search("object|attribute|index|NoneType", error.value.message)


def merged(*texts: Json) -> Merged:
    versions = [Version(number + 100, schema(body), number) for number, body in enumerate(texts, 1)]
    return merge((version, json_schema.shapes(version.schema)) for version in versions)


def test_a_description_of_half_a_character_is_readable() -> None:
    (shape,) = json_schema.shapes(schema(record(a={"type": "string", "description": "x\ud800"})))
    assert shape.doc == "x?"


def test_versions_are_merged_into_columns() -> None:
    versions = merged(
        record(id={"type": "integer", "format": "int32"}, place=record(city={"type": "string"})),
        record(
            id={"type": "integer"},
            place=record(city={"type": "string"}, zip={"type": "string"}),
            at={"type": "string", "format": "date"},
        ),
        record(id={"type": "string"}),
        record(at={"type": ["string", "null"], "format": "date", "description": "The day"}),
    )
    assert [(shape.name, str(shape.type), shape.doc) for shape in versions.shapes] == [
        ("id", "bigint", ""), ("place", "struct<city:string,zip:string>", ""), ("at", "date", "The day"),
    ]  # fmt: skip
    assert [fit.version.number for fit in versions.fits] == [1, 2, 4]
    assert [str(difference) for difference in versions.differences] == [
        "schema 103 (version 3) has `id` as string, and before it was bigint"
    ]


def test_a_time_that_a_version_writes_otherwise() -> None:
    day = {"type": "string", "format": "date"}
    days = {"type": "integer", "title": f"{CONNECT}Date"}
    read = json_schema.read(
        "value", merged(record(x=record(day=day)), record(x=record(day=day), n=days), record(x=record(day=days)), record(n=days))
    )
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
    encode = json_schema.encoder(schema({**record(to={"$ref": "address.json"}), "required": ["to"]}, **{"address.json": ADDRESS}))
    assert encode({"to": {"city": "Bonn"}}) == b'{"to": {"city": "Bonn"}}'
    for value, message in (({"to": {"city": 5}}, "`to.city`: 5 is not of type 'string'"), ({}, "'to' is a required property")):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            encode(value)


def run(
    spark: SparkSession, lake: Path, versions: Merged, values: list[bytes], keys: list[bytes | None] | None = None
) -> Outcome:
    """Runs a pipeline of a topic whose values, or keys, have the schemas of a registry."""
    part: MessagePart = "value" if keys is None else "key"
    columns = [(shape.name, decoder.column_sql(part, shape.name)) for shape in versions.shapes]
    decoding = confluent_frame.decoding(part, versions, json_schema.read(part, versions), columns, (), absent=(77,))
    column_lines = ", ".join(f'"{shape.name}": "{shape.type.sql}"' for shape in versions.shapes)
    plan = plan_for(
        lake,
        "127.0.0.1:1",
        f"""
topic: t
value: json
columns: {{{column_lines}}}
---
pipeline: t
from: {{topic: t}}
into: {{table: n{uuid.uuid4().hex}.t}}
""",
    )
    (topic,) = plan.pipelines[0].topics
    pipeline = replace(plan.pipelines[0], source=Topics((replace(topic, decoding=decoding),)))
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    messages = tuple(
        Message(batch=1, topic="t", partition=0, offset=offset, timestamp=start, key=key, value=value)
        for offset, (key, value) in enumerate(zip(keys or [None] * len(values), values, strict=True))
    )
    outcome = Trials(spark, plan).run(
        pipeline, SpecTest(name="messages", where=Where("", 0, 0), given=messages, expect=None, expect_bad=())
    )
    assert outcome.error is None
    return outcome


def message(number: int, body: Json) -> bytes:
    return bytes([0, 0, 0, 0, number]) + (body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode())


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
    first_body = record(
        id={"type": "integer", "format": "int32"}, price=DECIMAL, x=record(days={"type": "array", "items": DAY}), either={}
    )
    second_body = record(
        id={"type": "integer"}, at={"type": "string", "format": "date-time"}, raw={"type": "string", "contentEncoding": "base64"},
        more={"type": "object", "additionalProperties": DECIMAL},
    )  # fmt: skip
    third_body = record(x=record(days={"type": "array", "items": {"type": "string", "format": "date"}}))
    versions = merged(first_body, second_body, third_body)
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
    outcome = run(spark, lake, versions, [data for data, _ in (*good, *bad)])
    assert without_kafka(outcome) == [row for _, row in good]
    reasons = {row["offset"] - len(good): row["message"] for row in outcome.bad}
    assert [reasons[index] for index in sorted(reasons)] == [text for _, text in bad]


@pytest.mark.spark
def test_keys_are_read_by_their_schema(spark: SparkSession, lake: Path) -> None:
    keys = [message(101, {"id": 1, "day": 20460}), None, message(101, {"id": "1"}), message(101, b"x"), b""]
    outcome = run(spark, lake, merged(record(id={"type": "integer"}, day=DAY)), [b"any"] * len(keys), keys)
    assert without_kafka(outcome) == [{"id": 1, "day": date(2026, 1, 7)}, {}]
    assert sorted((row["offset"], row["stage"], row["code"], row["message"]) for row in outcome.bad) == [
        (2, "key", "undecodable_key", 'field `id`: wanted bigint, found "1"'),
        (3, "key", "undecodable_key", "the key is not JSON: `x` is not expected at byte 5"),
        (4, "key", "undecodable_key", "the key does not begin with the id of a schema"),
    ]


@pytest.mark.spark
def test_a_whole_number_is_an_integer_however_it_is_written(spark: SparkSession, lake: Path) -> None:
    outcome = run(spark, lake, merged(record(id={"type": "integer"})), [message(101, b'{"id":1.0}'), message(101, b'{"id":1e2}')])
    assert without_kafka(outcome) == [{"id": 1}, {"id": 100}]
