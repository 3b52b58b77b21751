"""`generate`, `send`, `peek` and `init` of topics whose schemas are in a real registry."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from framework.base.errors import BatchError
from framework.core.schemas.schema_lookup import LiveSchemas
from framework.host.plans import make
from framework.machine.services.ports import free_port
from framework.plan import Message
from tests.support.commands import Commands
from tests.support.proxy import Request, between
from tests.support.registry_project import encoded, framed, record
from tests.support.spec_parts import LAKE

pytestmark = pytest.mark.kafka
BASE = f"""
cluster: main
bootstrap: "{{kafka}}"
registry: "{{registry}}"
---
{LAKE}"""
ORDERS = """
---
topic: orders
kafka_name: {name}
value: {format}
key: {{format: {format}, columns: {{order_id: bigint}}}}
columns:
  side: {{type: string, required: true}}
  price: decimal(9,2)
  at: timestamp
  day: date
  deep: struct<a int, b string>
  parts: array<string>
  data: binary
generate:
  rate: 10/s
  columns:
    order_id: {{between: [1, 9]}}
    side: {{one_of: [BUY, SELL]}}
    price: {{between: [1, 5]}}
    at: {{now: true}}
    day: {{now: true}}
    deep.a: {{between: [1, 5]}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
"""
TRADES = """
---
topic: trades
kafka_name: {name}
value: avro
{more}
"""


class Shop(Commands):
    """A folder with specs. Its only topic has a unique name in Kafka and in the registry."""

    def __init__(self, folder: Path, kafka: str, registry: str) -> None:
        self.folder = folder
        self.kafka = kafka
        self.registry = registry
        self.name = f"t{uuid.uuid4().hex[:10]}"

    def specs(self, text: str = "", registry: str | None = None, **values: str) -> None:
        (self.folder / "specs").mkdir(exist_ok=True)
        base = BASE.format(kafka=self.kafka, registry=registry or self.registry)
        (self.folder / "specs" / "a.yaml").write_text(base + text.format(name=self.name, **values))

    def peeked(self, topic: str, count: int = 100) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ok("peek", topic, "--count", str(count), "--json").splitlines()]

    def register(self, schema: Any, subject: str | None = None, kind: str = "AVRO") -> int:
        body = {"schema": schema if kind == "PROTOBUF" else json.dumps(schema), "schemaType": kind}
        answer = requests.post(f"{self.registry}/subjects/{subject or self.name + '-value'}/versions", json=body, timeout=20)
        answer.raise_for_status()
        return int(answer.json()["id"])

    def make_topic(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.kafka})
        admin.create_topics([NewTopic(self.name, 1, 1)])[self.name].result()

    def put(self, *values: bytes | None, key: bytes | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.kafka})
        for value in values:
            producer.produce(self.name, value, key=key, partition=0)
        assert producer.flush(30) == 0


@pytest.fixture
def shop(tmp_path: Path, kafka: str, registry: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.chdir(tmp_path)
    new_shop = Shop(tmp_path, kafka, registry)
    yield new_shop
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.delete_topics([new_shop.name]).values():
        future.exception()


@pytest.mark.parametrize("format_", ["avro", "json_schema", "protobuf"])
def test_generated_and_sent_messages_are_decoded_by_peek(shop: Shop, format_: str) -> None:
    """The first generated messages register a schema of the columns; a sent message comes back unchanged, by the same schema."""
    shop.specs(ORDERS, format=format_)
    output = shop.ok("generate", "orders", "--count", "3", "--seed", "1")
    value, key = (
        re.search(rf"^orders: registered the schema of {shop.name}-{part}, id (\d+)$", output, re.M) for part in ("value", "key")
    )
    assert value and key, output
    assert "registered" not in shop.ok("generate", "orders", "--count", "1", "--seed", "1")
    order = {"side": "BUY", "price": 1.5, "at": "2026-01-05T10:00:00Z", "day": "2026-01-05", "deep": {"a": 1, "b": "x"},
             "parts": ["p"], "data": "AAE="}  # fmt: skip
    shop.ok("send", "orders", json.dumps(order), "--key", '{"order_id": 7}')
    *generated, sent_message = shop.peeked("orders")
    assert [message["key"]["order_id"] for message in generated] == [3, 8, 4, 3]
    assert {message["value"]["side"] for message in generated} <= {"BUY", "SELL"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", message["value"]["day"]) for message in generated)
    assert [message["bad"] for message in generated] == [None] * 4
    assert (sent_message["value"], sent_message["key"]) == (order, {"order_id": 7})
    assert (sent_message["value_schema"], sent_message["key_schema"]) == (
        {"id": int(value[1]), "version": 1},
        {"id": int(key[1]), "version": 1},
    )
    assert "no problems" in shop.ok("check")


def test_a_value_that_does_not_fit_its_schema_is_not_sent(shop: Shop) -> None:
    shop.specs(ORDERS, format="avro")
    output = shop.refused("send", "orders", "{}")
    assert output.startswith(
        f"no-subject: the registry has no schema for the subject `{shop.name}-value`\n  hint: `sluice generate orders`"
    )
    shop.ok("generate", "orders", "--count", "1")
    before = len(shop.peeked("orders"))
    for value, wrong in (
        ('{"side": 5}', "`side` must be string, and is 5"),
        ('{"prise": 5}', "there is no field `prise`"),
        ('{"price": 1.234}', "`price` must be decimal(9,2), and is 1.234"),
        ("nope", "it is not one JSON object, or names a field twice"),
        ('{"side": "a", "side": "b"}', "it is not one JSON object, or names a field twice"),
        ("[1]", "it is no JSON object"),
    ):
        output = shop.refused("send", "orders", value)
        assert re.fullmatch(
            rf"not-its-format: the value does not fit schema \d+ \(version 1\) of `{shop.name}-value`: {re.escape(wrong)}\n"
            r"  hint: correct it; --raw sends the bytes as they are\n", output,
        ), output  # fmt: skip
    assert "`order_id` must be long" in shop.refused("send", "orders", "{}", "--key", '{"order_id": "x"}')
    lines = b'{"side": "a"}\n{"side": 5}\n{"side": "b"}\n'
    assert "line 2: the value does not fit" in shop.refused("send", "orders", "-", given=lines)
    shop.ok("send", "orders", '{"side": 5}', "--raw", "--key", "k")
    *_, good_message, raw_message = shop.peeked("orders")
    assert len(shop.peeked("orders")) == before + 2
    assert good_message["value"]["side"] == "a"
    assert (raw_message["value"], raw_message["value_hex"], raw_message["key_hex"]) == (None, b'{"side": 5}'.hex(), b"k".hex())
    assert raw_message["bad"] == {"code": "undecodable", "message": "the value does not begin with the id of a schema"}


def test_generate_uses_an_existing_schema(shop: Shop) -> None:
    """Defaults and nulls come from the schema; a field without a default and an unknown symbol are refused at once."""
    side = {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}
    shop.register(record(("side", side), ("note", ["null", "string"]), ("at", {"type": "long", "logicalType": "timestamp-millis"}),
                         ("kind", "string", {"default": "web"})))  # fmt: skip
    options = "generate: {{rate: 1/s, columns: {{{0}}}}}".format
    for columns, problem in (
        ("side: {one_of: [BUY]}", "`at` is missing, and the schema has no default for it"),
        ("side: {one_of: [BUY, HOLD]}, at: {now: true}", '`side` must be one of BUY, SELL, and is "HOLD"'),
    ):
        shop.specs(TRADES, more=options(columns))
        assert f"cannot-generate: no messages for `trades` can be generated: {problem}\n" in shop.refused("generate", "trades")
        assert "no-topic" in shop.refused("peek", "trades")
    shop.specs(TRADES, more=options("side: {one_of: [BUY]}, at: {now: true}"))
    shop.ok("generate", "trades", "--count", "1")
    (message,) = shop.peeked("trades")
    assert {**message["value"], "at": None} == {"side": "BUY", "note": None, "at": None, "kind": "web"}


def test_columns_that_do_not_fit_the_schema_are_not_generated(shop: Shop) -> None:
    shop.specs(TRADES, more="generate: {rate: 1/s, columns: {side: {one_of: [BUY]}}}")
    assert "no-subject" in shop.refused("generate", "trades")
    shop.specs(TRADES, more="columns: {small: tinyint}\ngenerate: {rate: 1/s, columns: {small: {one_of: [1]}}}")
    assert "the topic's `columns` make none" in shop.refused("generate", "trades")
    columns = "columns: {{id: bigint, at: {{type: timestamp, format: epoch_micros}}}}\n"
    spec = f"\n---\ntopic: trades\nkafka_name: {{name}}\nvalue: debezium_json\n{columns}"
    shop.specs(spec + "generate: {{rate: 1/s, columns: {{id: {{between: [1, 1]}}}}}}\n")
    shop.ok("generate", "trades", "--count", "1")
    (message,) = shop.peeked("trades")
    assert (message["value"]["op"], message["value"]["before"], message["value"]["after"]) == ("c", None, {"id": 1})
    assert isinstance(message["value"]["source"]["ts_ms"], int)


CHANGES = """
---
topic: changes
kafka_name: {name}
value: debezium_avro
---
pipeline: changes
from: {{topic: changes}}
into: {{table: shop.changes, write: upsert, keys: [id]}}
tests:
  - name: the newest counts
    given:
      - {{op: c, before: null, after: {{id: 1, name: a}}, source: {{ts_ms: 1, db: d}}}}
      - {{op: u, before: null, after: {{id: 1, name: b}}, source: {{ts_ms: 2, db: d}}}}
    expect: [{{id: 1, name: b}}]
"""


def test_changes_of_a_database(shop: Shop) -> None:
    """An envelope is sent unchanged, by the schema that the connector has registered."""
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "ts_ms", "type": "long"}, {"name": "db", "type": "string"}]}
    images = [{"name": "before", "type": ["null", row], "default": None}, {"name": "after", "type": ["null", "Value"]}]
    fields = [*images, {"name": "source", "type": source}, {"name": "op", "type": "string"}]
    id_ = shop.register({"type": "record", "name": "Envelope", "fields": fields})
    shop.make_topic()
    shop.specs(CHANGES)
    sent_message = {"before": None, "after": {"id": 1, "name": "a"}, "source": {"ts_ms": 1, "db": "d"}, "op": "c"}
    shop.ok("send", "changes", json.dumps(sent_message))
    output = shop.refused("send", "changes", '{"op": "c", "after": {"id": 1}}')
    assert "`after.name` is missing, and the schema has no default for it" in output
    (peeked,) = shop.peeked("changes")
    assert (peeked["value"], peeked["value_schema"], peeked["bad"]) == (sent_message, {"id": id_, "version": 1}, None)
    assert "no problems" in shop.ok("check")


def test_peek_shows_each_by_its_own_schema(shop: Shop) -> None:
    first_schema, second_schema = record(("id", "long")), record(("id", "long"), ("note", ["null", "string"], {"default": None}))
    first_id, second_id = shop.register(first_schema), shop.register(second_schema)
    other_id = shop.register(record(("id", "int"), name="Other"), f"{shop.name}-other")
    key = shop.register("string", f"{shop.name}-key")
    shop.specs(TRADES, more="key: {format: avro, as: who}")
    shop.ok("topics", "create", "trades")
    good = framed(first_id, encoded(first_schema, {"id": 1}))
    shop.put(good, framed(second_id, encoded(second_schema, {"id": 2, "note": "n"})), framed(other_id, b"\x06"), good + b"\0",
             framed(77777, b"x"), b"\0\0", None, key=framed(key, b"\x02k"))  # fmt: skip
    messages = shop.peeked("trades")
    assert [message["value"] for message in messages] == [{"id": 1}, {"id": 2, "note": "n"}, {"id": 3}, None, None, None, None]
    versions = [(first_id, 1), (second_id, 2), (other_id, None), (first_id, 1), None, None, None]
    assert [item["value_schema"] for item in messages] == [item and {"id": item[0], "version": item[1]} for item in versions]
    assert {message["key"] for message in messages} == {"k"}
    assert [message["bad"] and message["bad"]["message"] for message in messages] == [
        None, None, None, f"the value is not what schema {first_id} says: more follows behind the message",
        "the registry has no schema 77777", "the value does not begin with the id of a schema", "the message has no value",
    ]  # fmt: skip
    output = shop.ok("peek", "trades")
    assert f', key k by schema {key} (version 1), value by schema {second_id} (version 2)\n  {{"id": 2, "note": "n"}}\n' in output
    assert f"value by schema {other_id}\n" in output
    assert f"  0x{good.hex()}00\n  bad row: undecodable: " in output


@pytest.mark.usefixtures("registry_away")
def test_without_a_registry_peek_shows_bytes_and_send_is_an_error(shop: Shop) -> None:
    schema = record(("id", "long"))
    id_ = shop.register(schema)
    options = "columns: {id: bigint}\ngenerate: {rate: 1/s, columns: {id: {between: [1, 9]}}}"
    shop.specs(TRADES, more=options)
    shop.ok("topics", "create", "trades")
    shop.put(framed(id_, encoded(schema, {"id": 1})))
    shop.specs(TRADES, registry=f"http://127.0.0.1:{free_port()}", more=options)
    result = shop.run("peek", "trades")
    assert "shown as bytes" in result.stderr
    sent_bytes = framed(id_, encoded(schema, {"id": 1}))
    assert f"  0x{sent_bytes.hex()}\n" in result.stdout
    assert "bad row:" not in result.stdout
    for words in (("send", "trades", '{"id": 1}'), ("generate", "trades", "--count", "1")):
        assert "registry-unreachable" in shop.refused(*words)
    shop.ok("send", "trades", "text", "--raw")


# Tests of specs


def test_given_values_are_written_by_the_newest_schema(shop: Shop) -> None:
    """Tests may also give fields that the spec's columns leave out; a value that does not fit is a problem of the spec."""
    side = {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}
    shop.register(record(("id", "long"), ("side", side)))
    id_ = shop.register(record(("id", "long"), ("side", side), ("kind", "string", {"default": "web"})))
    text = """
columns: {id: bigint}
---
pipeline: trades
from: {topic: trades}
into: {table: shop.trades}
tests: [{name: one, given: [{id: 1, side: BUY}, {id: 2, side: HOLD}, {id: 3}, {id: 4, side: 5}], expect: [{id: 1}]}]
"""
    shop.specs(TRADES, more=text)
    version = f"schema {id_} (version 2) of `{shop.name}-value`"
    problems = re.findall(r"a\.yaml:(\d+:\d+): (.*)", shop.refused("check"))
    assert problems == [
        ("21:57", f'wrong-type: the value does not fit {version}: `side` must be one of BUY, SELL, and is "HOLD"'),
        ("21:71", f"wrong-type: the value does not fit {version}: `side` is missing, and the schema has no default for it"),
        ("21:87", f'wrong-type: the value does not fit {version}: `side` must be one of BUY, SELL, and is "5"'),
    ]
    shop.specs(TRADES, more=text.replace(", {id: 2, side: HOLD}, {id: 3}, {id: 4, side: 5}", ""))
    (example_message,) = make(Path("specs")).pipelines[0].examples[0].given
    assert isinstance(example_message, Message)
    assert example_message.value == framed(id_, b"\x02\x00\x06web")


# A first spec


def test_a_spec_from_the_registry(shop: Shop) -> None:
    value = record(("side", "string", {"doc": "BUY or SELL"}), ("at", {"type": "long", "logicalType": "timestamp-millis"}))
    id_ = shop.register(value)
    key = shop.register(record(("order_id", "long"), name="Key"), f"{shop.name}-key")
    shop.specs()
    shop.make_topic()
    shop.put(framed(id_, b"\x06BUY\x00"), key=framed(key, b"\x0e"))
    output = shop.ok("init", "--topic", shop.name)
    assert f"{shop.name}: avro, 3 columns, from 1 message; into the table raw.{shop.name}" in output
    spec = (shop.folder / "specs" / f"{shop.name}.yaml").read_text()
    lines = spec.splitlines()
    assert lines[4:12] == [
        f"key: {{format: avro}}  # by schema {key} (version 1) of `{shop.name}-key`; its columns: order_id bigint",
        f"value: avro  # by schema {id_} (version 1) of `{shop.name}-value`",
        "# The columns are the fields of all versions of the schema. With those of today they are:",
        "#   side  string  -- BUY or SELL",
        "#   at    timestamp",
        "# event_time: at  # if that is when it happened; else Kafka's own time counts",
        "---",
        f"pipeline: {shop.name}",
    ]
    assert "no problems" in shop.ok("check")
    assert [column.name for column in make(Path("specs")).topics[0].columns] == ["order_id", "side", "at"]


def test_envelopes_of_debezium_in_avro_are_changes_by_the_keys_of_the_messages(shop: Shop) -> None:
    row = record(("note", ["null", "string"]), ("id", "long"), name="Value")
    source = record(("ts_ms", "long"), name="Source")
    envelope = record(
        ("before", ["null", row]), ("after", ["null", "Value"]), ("source", source), ("op", "string"), ("ts_ms", "long"),
        name="Envelope",
    )  # fmt: skip
    after = {"before": None, "after": {"note": "a", "id": 7}, "source": {"ts_ms": 1}, "op": "c", "ts_ms": 1}
    id_ = shop.register(envelope)
    key = shop.register(record(("id", "long"), name="Key"), f"{shop.name}-key")
    shop.specs()
    shop.make_topic()
    shop.put(framed(id_, encoded(fastavro.parse_schema(envelope), after)), None, key=framed(key, b"\x0e"))
    assert f"{shop.name}: debezium_avro, 4 columns, " in shop.ok("init", "--topic", shop.name)
    spec = (shop.folder / "specs" / f"{shop.name}.yaml").read_text()
    assert "\n# 1 of 2 messages are tombstones, which are left out.\nvalue: debezium_avro  # by schema " in spec
    assert "\nkey:" not in spec
    assert spec.endswith(f"into: {{table: raw.{shop.name}, write: upsert, keys: [id]}}\n")
    assert "no problems" in shop.ok("check")


@pytest.mark.parametrize(("kind", "format_"), [("JSON", "json_schema"), ("PROTOBUF", "protobuf")])
def test_an_empty_topic_with_a_subject_into_an_empty_folder(shop: Shop, kind: str, format_: str) -> None:
    schemas = {"JSON": {"type": "object", "properties": {"id": {"type": "integer"}}},
               "PROTOBUF": 'syntax = "proto3"; message M { int64 id = 1; }'}  # fmt: skip
    shop.register(schemas[kind], kind=kind)
    shop.make_topic()
    shop.ok("init", "--topic", shop.name, "--bootstrap", shop.kafka, "--registry", shop.registry)
    assert f"registry: {shop.registry}\n" in (shop.folder / "specs" / "main.yaml").read_text()
    assert f"\nvalue: {format_}  # by schema " in (shop.folder / "specs" / f"{shop.name}.yaml").read_text()
    assert "no problems" in shop.ok("check")


def test_schemas_of_a_subject_with_another_name(shop: Shop) -> None:
    id_ = shop.register(record(("id", "long")), f"{shop.name}.Trade")
    shop.specs()
    shop.make_topic()
    shop.put(framed(id_, b"\x02"), key=b"k1")
    shop.ok("init", "--topic", shop.name)
    spec = (shop.folder / "specs" / f"{shop.name}.yaml").read_text()
    assert f'\nvalue: avro  # by schema {id_} (version 1) of `{shop.name}.Trade`\nsubject: "{shop.name}.Trade"\n' in spec
    assert "\nkey: {format: string, as: key}\n" in spec
    assert "no problems" in shop.ok("check")


def test_what_only_looks_like_it(shop: Shop) -> None:
    shop.specs()
    shop.make_topic()
    shop.put(framed(77777, b"x"))
    shop.ok("init", "--topic", shop.name)
    spec = (shop.folder / "specs" / f"{shop.name}.yaml").read_text()
    reason = "they begin as those of a schema registry do, but the registry does not have the schemas that they name"
    assert f"value: bytes  # 0 of 1 messages are UTF-8 text; {reason}\n" in spec
    assert "no problems" in shop.ok("check")


def test_another_registry_than_that_of_the_specs_is_refused(shop: Shop) -> None:
    shop.specs()
    output = shop.refused("init", "--topic", shop.name, "--registry", "http://registry.example.com")
    assert output.startswith(f"other-registry: the specs' cluster `main` names another registry, {shop.registry}\n")


def test_a_schema_that_does_not_fit_its_spec_keeps_no_other_pipeline_from_running(shop: Shop) -> None:
    two_pipelines = """
---
topic: a
value: avro
subject: {name}-a
---
pipeline: a
from: {{topic: a}}
into: {{table: shop.a}}
---
topic: b
value: avro
subject: {name}-b
---
pipeline: b
from: {{topic: b}}
into: {{table: shop.b}}
"""
    for name in "ab":
        shop.register(record(("id", "long")), f"{shop.name}-{name}")
    shop.specs(two_pipelines)
    schemas = LiveSchemas(make(Path("specs")))
    a, b = schemas.plan.pipelines
    for name, field in (("a", "ID"), ("b", "more")):
        shop.register(record(("id", "long"), (field, ["null", "string"], {"default": None})), f"{shop.name}-{name}")
    with pytest.raises(BatchError, match="specs-broken: the specs do not fit what the registry has now"):
        schemas.current(a)
    assert [column.name for column in schemas.current(b).topic.columns] == ["id", "more"]
    with pytest.raises(BatchError, match="specs-broken"):
        schemas.current(a)


def test_who_keeps_running_asks_for_a_subject_once_in_a_while(shop: Shop) -> None:
    shop.register(record(("id", "long")))
    asked: list[str] = []

    def count(request: Request) -> bool:
        asked.append(request.path)
        return False

    with between(shop.registry) as counted:
        shop.specs(ONE, registry=counted.url)
        counted.faults.append(count)
        kept, now = LiveSchemas(make(Path("specs")), rest=3600), LiveSchemas(make(Path("specs")))
        asked.clear()
        for _ in range(5):
            kept.current(kept.plan.pipelines[0])
        assert len(asked) == 1
        shop.register(record(("id", "long"), ("more", ["null", "string"], {"default": None})))
        assert [column.name for column in now.current(now.plan.pipelines[0]).topic.columns] == ["id", "more"]
        assert [column.name for column in kept.current(kept.plan.pipelines[0]).topic.columns] == ["id"]


ONE = """
---
topic: a
kafka_name: {name}
value: avro
---
pipeline: a
from: {{topic: a}}
into: {{table: shop.a}}
"""
