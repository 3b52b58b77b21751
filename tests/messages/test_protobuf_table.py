"""Protobuf through a real registry, Kafka and Spark, several versions in one batch; keys; evolution by field numbers."""

from __future__ import annotations

from typing import Any

import pytest

from framework.base.errors import ColumnsChanged
from framework.messages.formats import protobuf
from framework.plan.schema import Schema
from tests.support.registry_project import Registered, framed

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

V1 = 'syntax = "proto3"; message Trade { int32 id = 1; optional string side = 2; repeated double prices = 3; }'
V2 = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message Trade { message Who { string name = 1; } int64 id = 1; optional string direction = 2; repeated double prices = 3;
  google.protobuf.Timestamp at = 4; map<string, int32> counts = 5; Who who = 6; }"""


@pytest.fixture
def trades(trades: Registered) -> Registered:
    trades.format = "protobuf"
    return trades


def messages(project: Registered, text: str, *values: dict[str, Any], subject: str | None = None) -> list[bytes]:
    id_ = project.register(text, subject, "PROTOBUF")
    encode = protobuf.encoder(Schema("PROTOBUF", text))
    return [framed(id_, encode(value)) for value in values]


def test_two_versions_in_one_batch(trades: Registered) -> None:
    trades.into_more = ", schema_changes: {rename: allow}"
    old_messages = messages(trades, V1, {"id": 1, "side": "BUY", "prices": [1.5]}, {"id": 2})
    new = {"id": 2**40, "direction": "SELL", "at": "2026-01-05T10:00:00Z", "counts": {"a": 1}, "who": {"name": "n"}}
    trades.send(
        [
            *old_messages,
            *messages(trades, V2, new),
            old_messages[0] + b"\x38\x01",
            old_messages[0][:-1],
            old_messages[0][:5] + b"\x05",
            None,
        ]
    )
    trades.run()
    assert trades.sql("select id, direction, prices, cast(at as string), counts['a'], who.name from {table} order by id") == [
        (1, "BUY", [1.5], None, None, None), (2, None, [], None, None, None), (2**40, "SELL", [], "2026-01-05 10:00:00", 1, "n"),
    ]  # fmt: skip
    assert sorted(row["code"] for row in trades.rows(bad=True)) == ["null_value", "undecodable", "undecodable", "undecodable"]
    trades.assert_exactly_once()


def test_another_name_by_number(trades: Registered) -> None:
    """A column of an existing table takes the new name of its field's number, once the spec allows it."""
    trades.send(messages(trades, V1, {"id": 1, "side": "BUY"}))
    trades.run()
    trades.send(messages(trades, V2, {"id": 2, "direction": "SELL"}))
    with pytest.raises(ColumnsChanged, match="`side` is `direction` in the newest schema"):
        trades.run()
    trades.into_more = ", schema_changes: {rename: allow}"
    trades.run()
    assert trades.sql("select id, direction from {table} order by id") == [(1, "BUY"), (2, "SELL")]


def test_what_is_wrong_with_a_schema_is_text_in_sql(trades: Registered) -> None:
    """The error of a broken schema is plain text in its bad rows, whatever the name of its reference."""
    name = "../${env:HOME}'`.proto"
    trades.register('syntax = "proto3"; message Other { int32 id = 1; }', f"{trades.topic}-other", "PROTOBUF")
    refers = [{"name": name, "subject": f"{trades.topic}-other", "version": 1}]
    broken = trades.register(V1.replace(";", f'; import "{name}";', 1), kind="PROTOBUF", references=refers)
    (good,) = messages(trades, V1, {"id": 1})
    trades.send([good, framed(broken, good[5:])])
    trades.run()
    (bad,) = trades.rows(bad=True)
    assert (bad["code"], bad["schema_id"]) == ("wrong_schema", broken)
    assert f"it refers to `{name}`, which cannot be the name of a file" in bad["message"]
    trades.assert_exactly_once()


def test_keys_are_read_by_their_own_schema(trades: Registered) -> None:
    trades.topic_more = "key: {format: protobuf}"
    (key,) = messages(trades, 'syntax = "proto3"; message K { int64 number = 1; }', {"number": 7}, subject=f"{trades.topic}-key")
    (value,) = messages(trades, V1, {"id": 1})
    trades.send_keys([(key, value), (None, value), (key + b"\xff", value)])
    trades.run()
    assert trades.sql("select number, id from {table} order by number nulls last") == [(7, 1), (None, 1)]
    assert [row["code"] for row in trades.rows(bad=True)] == ["undecodable_key"]


def test_imports_of_other_subjects(trades: Registered) -> None:
    trades.register('syntax = "proto3"; package geo; message Address { string city = 1; }', f"{trades.topic}-geo", "PROTOBUF")
    text = 'syntax = "proto3"; import "geo.proto"; message Order { int32 id = 1; geo.Address home = 2; }'
    id_ = trades.register(
        text, kind="PROTOBUF", references=[{"name": "geo.proto", "subject": f"{trades.topic}-geo", "version": 1}]
    )
    trades.send([framed(id_, b"\x00\x08\x01\x12\x06\x0a\x04Rome")])
    trades.run()
    assert trades.sql("select id, home.city from {table}") == [(1, "Rome")]
