"""Messages that are wrong in every known or imagined way: each becomes a bad row with its exact bytes, and no batch fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from framework.core.context.context import Context
from framework.core.rules.protocol import Range
from framework.core.run.run import batches
from framework.core.sources.source import MessageStore
from framework.plan import Pipeline
from tests.support.poison import BAD
from tests.support.project import Project, good

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

COLUMNS = """
  id: bigint
  number: int
  ratio: double
  text: string
  flag: boolean
  at: timestamp
  day: date
  money: decimal(9,2)
  list: array<int>
  place: struct<floor int, since timestamp>
  map: map<string,double>
  millis: {{type: timestamp, format: epoch_millis}}
"""

GOOD: dict[bytes, dict[str, Any]] = {
    b'{"id":1}': {"id": 1},
    b' \r\n\t{"id":2} \n': {"id": 2},
    b'{"id":3,"id":4}': {"id": 4},
    b'{"id":5,"more":{"a":[1,{"b":"}"}]}}': {"id": 5},
    b'{"id":6,"text":"}{"}': {"id": 6, "text": "}{"},
    b'{"id":7,"text":17}': {"id": 7, "text": "17"},
    b'{"id":8,"text":{"q": [1, 2.50]}}': {"id": 8, "text": '{"q": [1, 2.50]}'},
    b'{"id":9,"text":null}': {"id": 9, "text": None},
    b'{"id":10,"ratio":3}': {"id": 10, "ratio": 3.0},
    b'{"id":11,"money":1.25}': {"id": 11, "money": "1.25"},
    b'{"id":12,"money":7}': {"id": 12, "money": "7.00"},
    b'{"id":13,"at":"2026-01-05T10:00:00Z"}': {"id": 13, "at": "2026-01-05 10:00:00+00:00"},
    b'{"id":14,"at":"2026-01-05 10:00"}': {"id": 14, "at": "2026-01-05 10:00:00+00:00"},
    b'{"id":15,"at":"2026-01-05T10:00:00.123456+01:00"}': {"id": 15, "at": "2026-01-05 09:00:00.123456+00:00"},
    b'{"id":16,"day":"2026-02-28"}': {"id": 16, "day": "2026-02-28"},
    b'{"id":17,"list":[1,null,3]}': {"id": 17, "list": "[1, None, 3]"},
    b'{"id":18,"place":{"floor":2,"since":"2026-01-05T10:00:00Z"}}': {"id": 18},
    b'{"id":19,"map":{"a":1,"b":2.5}}': {"id": 19},
    b'{"id":20,"millis":1767607200000}': {"id": 20, "millis": "2026-01-05 10:00:00+00:00"},
    b'{"ID":21}': {"id": None},
    b"{}": {"id": None},
    b'{"id":22,"_sluice_corrupt":"x"}': {"id": 22},
    b'{"_sluice_end":true,"id":23}': {"id": 23},
    '{"id":24,"text":"ünïcödé 🚀"}'.encode(): {"id": 24, "text": "ünïcödé 🚀"},
    json.dumps({"id": 25, "text": "x" * 5_000_000}).encode(): {"id": 25, "text": "x" * 5_000_000},
}


def test_every_poison_is_a_bad_row_with_its_bytes(project: Project) -> None:
    project.template = project.template.replace("  id: {{type: bigint, required: true}}\n  price: double", COLUMNS.strip("\n"))
    project.template = project.template.replace("when: price > 900", "when: number > 900")
    project.make_topic(3, **{"max.message.bytes": "100000000"})
    project.send([*GOOD, *BAD])

    project.run()

    project.assert_exactly_once()
    bad_rows = {row["value"]: (row["code"], row["message"]) for row in project.rows(bad=True)}
    assert set(bad_rows) == set(BAD), "other messages are bad than should be"
    wrong = {value: (bad_rows[value][1], text) for value, text in BAD.items() if text is not None and bad_rows[value][1] != text}
    assert wrong == {}
    assert bad_rows[None][0] == "null_value"
    rows = [{name: _plain(value) for name, value in row.items()} for row in project.rows()]
    for value, expected in GOOD.items():
        shown_row = {name: _plain(cell) for name, cell in expected.items()}
        near_rows = [row for row in rows if row["id"] == shown_row["id"]]
        assert [row for row in near_rows if shown_row.items() <= row.items()], (
            f"{value[:60]!r} is not {shown_row} but {str(near_rows)[:300]}"
        )


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)


def test_unknown_fields_can_be_bad(project: Project) -> None:
    project.topic_more = "unknown_fields: bad"
    project.make_topic()
    project.send([b'{"id":1}', b'{"id":2,"other":1}', b'{"id":3,"price":null}'])
    project.run()
    assert sorted(row["id"] for row in project.rows()) == [1, 3]
    assert [(row["code"], row["message"]) for row in project.rows(bad=True)] == [
        ("unknown_field", "the field `other` is not a column")
    ]


def test_a_missing_required_field_is_a_bad_row(project: Project) -> None:
    project.make_topic()
    project.send([b'{"id":1}', b'{"price":1}', b'{"id":null}'])
    project.run()
    assert [row["id"] for row in project.rows()] == [1]
    assert {row["message"] for row in project.rows(bad=True)} == {"`id` is required and missing or null"}


def test_keys_and_headers_are_columns_or_bad_rows(project: Project) -> None:
    project.topic_more = "key: {{format: string, as: user}}\nheaders: {{source: string}}".replace("{{", "{").replace("}}", "}")
    project.make_topic(1)
    producer = Producer({"bootstrap.servers": project.bootstrap})
    producer.produce(project.topic, b'{"id":1}', key="ann", headers=[("source", b"web"), ("other", b"x"), ("source", b"app")])
    producer.produce(project.topic, b'{"id":2}')
    producer.produce(project.topic, b'{"id":3}', key=b"\xff")
    producer.produce(project.topic, b'{"id":4}', key="bob", headers=[("source", b"\xff")])
    producer.flush(30)

    project.run()

    assert sorted((row["id"], row["user"], row["source"]) for row in project.rows()) == [(1, "ann", "app"), (2, None, None)]
    bad = {row["value"]: (row["code"], row["key"], row["headers"] or None) for row in project.rows(bad=True)}
    assert bad == {
        b'{"id":3}': ("undecodable_key", b"\xff", None),
        b'{"id":4}': ("undecodable_header", b"bob", [{"key": "source", "value": b"\xff"}]),
    }


KEYS: dict[str, dict[bytes | None, Any]] = {
    "{format: long, as: id}": {
        None: (None,), (42).to_bytes(8, "big"): (42,), (-2).to_bytes(8, "big", signed=True): (-2,), b"\x80" + bytes(7): (-(1 << 63),),
        b"\x7f" + b"\xff" * 7: ((1 << 63) - 1,), bytes(8): (0,), b"": "undecodable_key", b"12345": "undecodable_key",
        bytes(9): "undecodable_key",
    },
    "{format: json, columns: {id: {type: long, required: true}, since: timestamp, n: \"decimal(9,2)\"}}": {
        b'{"id": 7, "since": "2026-01-05T10:00:00Z", "n": 1.5}': (7,), b' {"id": 8, "more": {"a": 1}} ': (8,),
        None: "missing_field", b'{"since": "2026-01-05T10:00:00Z"}': "missing_field", b'{"id": "7"}': "undecodable_key",
        b'{"id": 7} x': "undecodable_key", b"\xff": "undecodable_key", b"": "undecodable_key", b"null": "undecodable_key",
        b'{"id": 7, "since": "12:30"}': "undecodable_key", b'{"id": 7, "n": "1.5"}': "undecodable_key",
    },
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_keys_that_are_numbers_and_objects(project: Project, key: str) -> None:
    project.template = f"""
topic: trades
kafka_name: {{topic}}
key: {key.replace("{", "{{").replace("}", "}}")}
value: json
columns: {{{{number: int}}}}
---
pipeline: trades
from: {{{{topic: trades}}}}
into: {{{{table: {{namespace}}.trades}}}}
"""
    project.make_topic(1)
    producer = Producer({"bootstrap.servers": project.bootstrap})
    sent_keys = list(KEYS[key])
    for index, key_bytes in enumerate(sent_keys):
        producer.produce(project.topic, b'{"number":%d}' % index, key=key_bytes)
    producer.flush(30)

    project.run()

    good = {index: expected for index, expected in enumerate(KEYS[key].values()) if isinstance(expected, tuple)}
    assert {row["number"]: (row["id"],) for row in project.rows()} == good
    bad = {row["offset"]: (row["stage"], row["code"], row["key"]) for row in project.rows(bad=True)}
    assert bad == {
        index: ("key", expected, sent_keys[index])
        for index, expected in enumerate(KEYS[key].values())
        if isinstance(expected, str)
    }


@pytest.mark.parametrize(
    ("format_", "good", "bad"), [("string", "plain ünïcödé".encode(), b"\xff"), ("bytes", b"\xff\x00", None)]
)
def test_text_and_bytes_land_as_they_are(project: Project, format_: str, good: bytes, bad: bytes | None) -> None:
    project.template = f"""
topic: trades
kafka_name: {{topic}}
value: {format_}
---
pipeline: trades
from: {{{{topic: trades}}}}
into: {{{{table: {{namespace}}.trades}}}}
"""
    project.make_topic(1)
    project.send([good, bad], partition=0)
    project.run()
    assert [row["value"] for row in project.rows()] == [good.decode() if format_ == "string" else good]
    assert [row["value"] for row in project.rows(bad=True)] == [bad]


def test_many_large_bad_messages_do_not_pass_through_memory(project: Project) -> None:
    project.make_topic(3)
    values = [b"x" * 100_000 + str(number).encode() for number in range(200)]
    project.send(values)
    (batch,) = project.run()
    assert batch.bad == 200
    assert sorted(row["value"] for row in project.rows(bad=True)) == sorted(values)
    project.assert_exactly_once()


class CompactedBetweenReads:
    """Messages of a topic that lacks some of them when it is read a second time."""

    def __init__(self, kafka: MessageStore, condition: str) -> None:
        self.kafka, self.condition, self.reads = kafka, condition, 0
        self.topic_state, self.topic_ids, self.starts = kafka.topic_state, kafka.topic_ids, kafka.starts

    def read(self, spark: SparkSession, pipeline: Pipeline, range_: Range) -> DataFrame:
        self.reads += 1
        messages = self.kafka.read(spark, pipeline, range_)
        return messages if self.reads == 1 else messages.where(f"NOT ({self.condition})")


def test_bad_rows_that_are_compacted_before_they_are_read_again_are_kept_without_their_bytes(project: Project) -> None:
    project.make_topic(1)
    project.send([b"x" * 100_000, b"small and bad", b"y" * 100_000, good(1)], partition=0)
    context = project.context()
    kafka = CompactedBetweenReads(context.kafka(project.pipeline), "offset <= 1")
    (batch,) = batches(Context(context.plan, spark=lambda: project.spark, source=kafka), project.pipeline)
    assert (kafka.reads, batch.rows, batch.bad) == (2, 1, 3)
    bad_rows = {row["offset"]: row for row in project.rows(bad=True)}
    assert [bad_rows[offset]["value"] for offset in range(3)] == [None, b"small and bad", b"y" * 100_000]
    assert bad_rows[0]["message"].endswith("; Kafka compacted the message before its bytes were kept")
    assert [bad_rows[offset]["message"] for offset in (1, 2)] == [
        f"the value is not JSON: `{letter}` is not expected at byte 0" for letter in "sy"
    ]
    project.assert_exactly_once()
