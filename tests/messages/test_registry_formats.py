"""JSON Schema and Debezium's Avro through a real registry, Kafka and Spark."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from framework.base.errors import SpecError
from tests.support.broken_messages import broken
from tests.support.registry_project import Registered, framed, record

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def schema(**properties: Any) -> dict[str, Any]:
    return {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": properties}


def text(id_: int, value: Any) -> bytes:
    return framed(id_, value if isinstance(value, bytes) else json.dumps(value).encode())


def test_two_versions_of_json_schema_in_one_batch(trades: Registered) -> None:
    """Two versions land in one batch; text that does not fit the schemas is a bad row."""
    trades.format = "json_schema"
    first_id = trades.register(
        json.dumps(schema(id={"type": "integer"}, at={"type": "string", "format": "date-time"})), kind="JSON"
    )
    person = {"type": "object", "properties": {"name": {"type": "string"}}}
    second_id = trades.register(
        json.dumps(schema(id={"type": "integer"}, who=person, tags={"type": "array", "items": {"type": "number"}})), kind="JSON"
    )
    trades.send([
        text(first_id, {"id": 1, "at": "2026-01-05T10:00:00Z"}), text(second_id, {"id": 2, "who": {"name": "n"}, "tags": [1.5], "more": 1}),
        text(first_id, {"id": "x"}), text(first_id, b'{"id": 1} {"id": 2}'), text(first_id, b"no json"), b"\0\0", None,
    ])  # fmt: skip
    trades.run()
    assert trades.sql("select id, cast(at as string), who.name, tags from {table} order by id") == [
        (1, "2026-01-05 10:00:00", None, None), (2, None, "n", [1.5]),
    ]  # fmt: skip
    assert sorted(row["code"] for row in trades.rows(bad=True)) == ["null_value", *["undecodable"] * 4]
    assert {row["schema_id"] for row in trades.rows(bad=True)} == {first_id, None}
    trades.assert_exactly_once()


def test_json_schema_of_a_single_key(trades: Registered) -> None:
    """A key that is one JSON value lands; a key that only looks like one is a bad row."""
    trades.format, trades.topic_more = "json_schema", "key: {format: json_schema, as: id}"
    value = text(trades.register(json.dumps(schema(price={"type": "number"})), kind="JSON"), {"price": 1.5})
    single = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}
    key = trades.register(json.dumps(single), f"{trades.topic}-key", kind="JSON")
    good = {b'"a"': "a", b' "b\\n" ': "b\n", b"5": "5"}
    ends = b'"x",{"_sluice_end":true}],["y"'
    wrong = [b'"a","b"', b'"a", "other": "b"', b'"a"}{"value":"b"', b'"a"]', b"a", b"", b'"\xff"', ends]
    trades.send_keys([(framed(key, key_bytes), value) for key_bytes in [*good, *wrong]])
    trades.run()
    assert sorted(trades.sql("select id, price from {table}")) == sorted((key_text, 1.5) for key_text in good.values())
    assert [row["code"] for row in trades.rows(bad=True)] == ["undecodable_key"] * len(wrong)
    trades.assert_exactly_once()


TWO = """
topic: trades
kafka_name: {topic}
value: {format}
{topic_more}
---
topic: others
kafka_name: {topic}_others
value: {format}
{topic_more}
---
pipeline: trades
from: {{topics: [trades, others]}}
into: {{table: {namespace}.trades}}
{more}
"""


def test_topics_whose_schemas_differ(trades: Registered) -> None:
    """Each topic is read by its own schemas, but the schemas of one pipeline must agree."""
    trades.template = TWO
    id_schema = record(("id", "long"))
    trades.register(id_schema)
    with pytest.raises(SpecError, match=r"no-subject.*_others-value"):
        trades.plan  # noqa: B018
    trades.register(id_schema, f"{trades.topic}_others-value")
    assert [topic.name for topic in trades.pipeline.topics] == ["trades", "others"]  # the same text has one id
    trades.register(record(("id", "long"), ("at", ["null", "int"], {"default": None})))
    trades.register(record(("id", "long"), ("at", ["null", "int"], {"default": 5})), f"{trades.topic}_others-value")
    with pytest.raises(SpecError, match="`others` and `trades` differ in their schemas or required"):
        trades.plan  # noqa: B018


ROW = record(("id", "long"), ("name", ["null", "string"], {"default": None}), name="Value")
SOURCE = record(("ts_ms", "long"), ("db", "string"), name="Source")
ENVELOPE = record(
    ("before", ["null", ROW], {"default": None}), ("after", ["null", "Value"], {"default": None}), ("source", SOURCE),
    ("op", "string"), ("ts_ms", ["null", "long"], {"default": None}), name="Envelope",
)  # fmt: skip


def change(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"ts_ms": 1767607200000, "db": "d"}, "op": op, "ts_ms": 1}


def test_changes_of_debezium_in_avro(trades: Registered) -> None:
    """Each change becomes the new state of the database's row, a delete its old state; tombstones are left out."""
    trades.format = "debezium_avro"
    id_ = trades.register(ENVELOPE)
    a, b = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    good = trades.avro(
        id_, change("r", None, a), change("c", None, a), change("u", a, b), change("u", None, b), change("d", b, None)
    )
    trades.send([*good, None, *trades.avro(id_, change("c")), good[0][:-1]])
    (batch,) = trades.run()
    assert batch.filtered == 1
    assert trades.sql("select _op, id, name, cast(_source_at as string) from {table} order by _op, name") == [
        (op, 1, name, "2026-01-05 10:00:00") for op, name in (("c", "a"), ("d", "b"), ("r", "a"), ("u", "b"), ("u", "b"))
    ]
    assert [row["code"] for row in trades.rows(bad=True)] == ["undecodable", "undecodable"]


@pytest.mark.long
@pytest.mark.parametrize("write", ["upsert", "history"])
def test_debezium_avro_by_its_keys(trades: Registered, write: str) -> None:
    order = ", order_by: _kafka_offset" if write == "upsert" else ""
    trades.format, trades.into_more = "debezium_avro", f", write: {write}, keys: [id]{order}"
    id_ = trades.register(ENVELOPE)
    a, b, unsent = {"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "__debezium_unavailable_value"}
    trades.send(trades.avro(id_, change("c", None, a), change("c", None, b), change("u", None, unsent)), 0)
    trades.run()
    trades.send([*trades.avro(id_, change("u", None, unsent), change("d", {"id": 2, "name": None})), None], 0)
    trades.run()
    condition = "where is_current" if write == "history" else ""
    assert trades.sql(f"select _op, id, name from {{table}} {condition}") == [("u", 1, "a")]
    trades.send(trades.avro(id_, change("t"), change("c", None, {"id": 3, "name": "c"})), 0)
    trades.run()
    assert trades.sql(f"select _op, id, name from {{table}} {condition}") == [("c", 3, "c")]
    assert trades.rows(bad=True) == []
    if write == "history":
        assert [row[0] for row in trades.sql("select name from {table} order by id, _kafka_offset")] == ["a", "a", "a", "b", "c"]


def test_debezium_with_columns(trades: Registered) -> None:
    trades.format, trades.topic_more = "debezium_avro", "columns: {id: bigint, name: {type: string, required: true}}"
    id_ = trades.register(ENVELOPE)
    trades.send(
        trades.avro(
            id_,
            change("c", None, {"id": 1, "name": None}),
            change("d", {"id": 1, "name": None}),
            change("c", None, {"id": 2, "name": "x"}),
        )
    )
    trades.run()
    assert trades.sql("select _op, id, name from {table} order by id") == [("d", 1, None), ("c", 2, "x")]
    assert [row["code"] for row in trades.rows(bad=True)] == ["missing_field"]


def test_fields_of_two_versions_that_spark_takes_for_one(trades: Registered) -> None:
    trades.format = "json_schema"
    for name in ("s", "ſ"):
        trades.register(json.dumps(schema(x={"type": "object", "properties": {name: {"type": "string"}}})), kind="JSON")
    with pytest.raises(SpecError, match="`s` and `ſ` of `x` differ only in case") as error:
        _ = trades.plan
    assert [problem.code for problem in error.value.problems] == ["unsupported-schema"]


@pytest.mark.parametrize("format_", ["json_schema", "protobuf", "debezium_avro"])
def test_a_schema_of_another_kind(trades: Registered, format_: str) -> None:
    trades.format = format_
    trades.register(record(("id", "long")))
    with pytest.raises(SpecError) as error:
        _ = trades.plan
    assert [problem.code for problem in error.value.problems] == ["unsupported-schema"]
    reason = (
        "an envelope of Debezium has `op`" if format_ == "debezium_avro" else f"is of the kind AVRO, and the spec says {format_}"
    )
    assert reason in error.value.problems[0].message


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["json_schema", "debezium_avro"])
def test_any_broken_bytes_are_a_row_or_a_bad_row(trades: Registered, format_: str) -> None:
    """Each of 3,000 messages with changed, cut, added and doubled bytes is a row or a bad row, and nothing fails."""
    trades.format = format_
    if format_ == "json_schema":
        tags = {"type": "array", "items": {"type": "number"}}
        id_ = trades.register(json.dumps(schema(id={"type": "integer"}, name={"type": "string"}, tags=tags)), kind="JSON")
        good = text(id_, {"id": 5, "name": "n\u00e9", "tags": [1, 2.5]})
    else:
        good = trades.avro(trades.register(ENVELOPE), change("u", {"id": 1, "name": "a"}, {"id": 1, "name": "b"}))[0]
    chance = random.Random(1)
    trades.send([broken(good, chance) for _ in range(3000)])
    trades.run()
    trades.assert_exactly_once()
    assert len(trades.rows(bad=True)) > 500
