"""Debezium's events on the real engine: each becomes the intended row, is left out, or is a bad row that says why."""

from __future__ import annotations

import json
import uuid
from base64 import b64encode
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SpecError, Where
from framework.base.types import BIGINT, STRING, Field, Struct
from framework.messages.encoding.debezium import CHANGES
from framework.messages.formats import debezium_avro
from framework.messages.schemas.versions import ColumnShape, Unsupported
from framework.operations.trials.trial import Outcome, Trials
from framework.plan import Message, SpecTest
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = Path(__file__).parents[1] / "debezium"
CHANGE_TIME = datetime(2026, 1, 2, 10, tzinfo=timezone.utc)
PIPELINE = """
---
pipeline: orders
from: {topic: orders}
into: {table: NAMESPACE.orders}
"""
ORDERS = """
topic: orders
value: debezium_json
columns:
  id: {type: bigint, required: true}
  customer: string
  note: string
  total: {type: "decimal(10,2)", format: base64}
  placed: {type: timestamp, format: epoch_micros}
  due: {type: date, format: epoch_days}
  paid: timestamp
  labels: array<string>
"""


def message(offset: int, value: bytes | None, key: bytes | None = None) -> Message:
    return Message(batch=1, topic="orders", partition=0, offset=offset, timestamp=CHANGE_TIME, key=key, value=value)


def run(spark: SparkSession, lake: Path, specs: str, values: list[bytes | None]) -> Outcome:
    plan = plan_for(lake, "127.0.0.1:1", specs + PIPELINE.replace("NAMESPACE", f"n{uuid.uuid4().hex}"))
    messages = tuple(message(offset, value) for offset, value in enumerate(values))
    outcome = Trials(spark, plan).run(
        plan.pipelines[0], SpecTest(name="events", where=Where("", 0, 0), given=messages, expect=None, expect_bad=())
    )
    assert outcome.error is None
    return outcome


def events(connector: str) -> dict[str, bytes | None]:
    samples = json.loads((EVENTS / f"{connector}.json").read_text(encoding="utf-8"))
    return {name: None if sample["value"] is None else json.dumps(sample["value"]).encode() for name, sample in samples.items()}


def by_name(outcome: Outcome, names: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows by name, without Kafka's columns and without nulls."""
    rows_by_name = {}
    for row in outcome.rows:
        row_values = {name: value for name, value in row.items() if not name.startswith("_kafka_") and value is not None}
        rows_by_name[list(names)[row["_kafka_offset"]]] = {
            name: value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value
            for name, value in row_values.items()
        }
    return rows_by_name


def row(op: str, seconds: int, **changes: Any) -> dict[str, Any]:
    defaults = {
        "customer": "Ada", "note": "by bike", "total": Decimal("123.45"), "due": date(2026, 1, 7),
        "placed": datetime(2026, 1, 2, 8, 4, 56, 123456, timezone.utc), "paid": datetime(2026, 1, 2, 9, 30, 0, 500000, timezone.utc),
    }  # fmt: skip
    fields = {**defaults, **changes, "_op": op, "_source_at": CHANGE_TIME + timedelta(seconds=seconds)}
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.spark
def test_postgresqls_events_become_rows(spark: SparkSession, lake: Path) -> None:
    samples = events("postgresql")
    outcome = run(spark, lake, ORDERS, list(samples.values()))
    new_labels, truncate_row = ["new", "eu"], {"_op": "t", "_source_at": CHANGE_TIME + timedelta(seconds=6)}
    assert by_name(outcome, samples) == {
        "create": row("c", 0, id=1, labels=new_labels),
        "create with schema": row("c", 0, id=2, labels=[]),
        "update without the image before": row("u", 1, id=1, note="by car", total=Decimal("-3.91"), labels=new_labels),
        "update with the image before": row("u", 2, id=2, customer="Bo", note=None, labels=new_labels),
        "delete that knows the key alone": {
            "id": 1,
            "customer": "",
            "_op": "d",
            "_source_at": CHANGE_TIME + timedelta(seconds=3),
        },
        "delete with the image before": row("d", 4, id=2, customer="Bo", labels=new_labels),
        "read in a snapshot": row("r", 0, id=3),
        "primary key changed: delete": row("d", 5, id=3, labels=new_labels),
        "primary key changed: create": row("c", 5, id=30, labels=new_labels),
        "truncate": truncate_row,
        "truncate with schema": truncate_row,
        "a value that was not sent": row(
            "u", 8, id=30, note="__debezium_unavailable_value", labels=["__debezium_unavailable_value"]
        ),
    }
    assert outcome.bad == ()
    assert samples.keys() - by_name(outcome, samples).keys() == {"tombstone", "message of the log"}


@pytest.mark.parametrize(
    ("key", "hint", "obeyed"),
    [
        (
            "key: {format: json, columns: {id: bigint}}",
            "remove `key`: `after` has this column, and `keys` of the pipeline can name it",
            "",
        ),
        (
            "key: {format: json, columns: {id: bigint, region: string}}",
            "remove `id` from `columns` of the `key`: `after` has it, and `keys` of the pipeline can name it",
            "key: {format: json, columns: {region: string}}",
        ),
        ("key: {format: long, as: id}", "write another name under `as`, such as `key_id`", "key: {format: long, as: key_id}"),
    ],
)
@pytest.mark.spark
def test_a_key_that_is_declared_as_in_the_database_has_a_hint_that_gives_the_table(
    spark: SparkSession, lake: Path, key: str, hint: str, obeyed: str
) -> None:
    topic = "topic: orders\nvalue: debezium_json\nKEY\ncolumns: {id: {type: bigint, required: true}, customer: string}\n"
    pipeline = f"---\npipeline: orders\nfrom: {{topic: orders}}\ninto: {{table: n{uuid.uuid4().hex}.orders, write: upsert, keys: [id]}}\n"
    with pytest.raises(SpecError) as error:
        plan_for(lake, "127.0.0.1:1", topic.replace("KEY", key) + pipeline)
    (problem,) = error.value.problems
    assert (problem.code, problem.hint) == ("duplicate-column", hint)

    plan = plan_for(lake, "127.0.0.1:1", topic.replace("KEY", obeyed) + pipeline)
    messages = []
    for offset, (op, id_, customer) in enumerate([("c", 1, "Ada"), ("c", 2, "Bo"), ("u", 1, "Cy"), ("d", 2, None)]):
        image = {"before": {"id": id_}} if op == "d" else {"after": {"id": id_, "customer": customer}}
        value = json.dumps({"op": op, **image, "source": {"ts_ms": 1000 * offset}}).encode()
        has_long_key = "long" in obeyed
        messages.append(message(offset, value, id_.to_bytes(8, "big") if has_long_key else json.dumps({"id": id_}).encode()))
    example = SpecTest(name="events", where=Where("", 0, 0), given=tuple(messages), expect=None, expect_bad=())
    outcome = Trials(spark, plan).run(plan.pipelines[0], example)
    assert outcome.error is None and outcome.bad == ()
    assert [(row["id"], row["customer"]) for row in outcome.rows] == [(1, "Cy")]


@pytest.mark.spark
def test_mysqls_events_become_rows(spark: SparkSession, lake: Path) -> None:
    samples = events("mysql")
    outcome = run(spark, lake, ORDERS, list(samples.values()))
    assert by_name(outcome, samples) == {
        "create": row("c", 0, id=1),
        "update": row("u", 1, id=1, total=Decimal("2.00")),
        "delete": row("d", 2, id=1, total=Decimal("2.00")),
        "read in a snapshot": row("r", 0, id=2, total=Decimal("0.00"), paid=None),
        "truncate": {"_op": "t", "_source_at": CHANGE_TIME + timedelta(seconds=3)},
    }
    assert outcome.bad == ()
    skipped_names = {"tombstone", "change of the schema", "change of the schema with schema"}
    assert samples.keys() - by_name(outcome, samples).keys() == skipped_names


MONGO = "`after` or `before` is text, as MongoDB's connector writes it: unwrap it there (ExtractNewDocumentState)"
GOOD = {"id": 1, "customer": "Ada", "due": 20460}
NOT_THERE = "the value is no envelope of Debezium: it has no `op`"
BAD: list[tuple[Any, str]] = [
    (events("mongodb")["create"], MONGO),
    ({"op": "c", "before": None}, "the envelope has no `after`, and its op is c"),
    ({"op": "u", "after": None, "before": GOOD}, "the envelope has no `after`, and its op is u"),
    ({"op": "d", "before": None, "after": GOOD}, "the envelope has no `before`, and its op is d"),
    ({"payload": {"op": "r"}, "schema": None}, "the envelope has no `after`, and its op is r"),
    ({"op": "x", "after": GOOD}, "the envelope has the op x, which is none of c, u, d, r, t and m"),
    ({"op": 5, "after": GOOD}, "the envelope has the op 5, which is none of c, u, d, r, t and m"),
    ({"after": GOOD}, NOT_THERE),
    ({"op": None, "after": GOOD}, NOT_THERE),
    ({"payload": {"after": GOOD}}, NOT_THERE),
    ({"payload": None, "schema": None}, NOT_THERE),
    (GOOD, NOT_THERE),
    ({"op": "c", "after": {"id": "1"}}, 'field `after.id`: wanted bigint, found "1"'),
    ({"payload": {"op": "c", "after": {"id": 1, "due": "2026-01-07"}}}, 'field `after.due`: wanted date (epoch_days), found "2026-01-07"'),
    ({"op": "c", "after": {"id": 1, "labels": "a"}}, 'field `after.labels`: wanted array<string>, found "a"'),
    ({"op": "u", "before": {"id": True}, "after": GOOD}, "field `before.id`: wanted bigint, found true"),
    ({"op": "c", "after": {"id": 1, "due": 10**9}}, "field `after.due`: wanted date (epoch_days), found 1000000000"),
    ({"op": "c", "after": {"id": 1, "paid": "10:00"}}, 'field `after.paid`: wanted timestamp, found "10:00"'),
    ({"op": "c", "after": {"id": 1, "total": "no base64"}}, 'field `after.total`: wanted decimal(10,2) (base64), found "no base64"'),
    ({"op": "c", "after": {"id": 1, "total": b64encode(bytes([127] * 16)).decode()}}, 'field `after.total`: wanted decimal(10,2) (base64)'),
    ({"op": "c", "after": GOOD, "source": {"ts_ms": "now"}}, 'field `source.ts_ms`: wanted timestamp (epoch_millis), found "now"'),
    ({"op": "c", "after": GOOD, "source": {"ts_ms": 10**18}}, "field `source.ts_ms`: wanted timestamp (epoch_millis)"),
    ([GOOD], "the value is not a JSON object but a list"),
    (b"", "the value is empty"),
    (b"]", "the value is not JSON: `]` is not expected at byte 0"),
    (b"\xff", "the value is not JSON: the byte 0xFF is not expected at byte 0"),
    (b'{"op": "t"} {"op": "t"}', "more text follows the JSON object"),
    (b'{"op": "t"},{"_sluice_end": true}', "more text follows the JSON object"),
    (b'{"op": "t"}]', "more text follows the JSON object"),
    (b'{"op": "m"', "the value is not JSON: it is cut off"),
]  # fmt: skip


@pytest.mark.spark
def test_what_is_no_envelope(spark: SparkSession, lake: Path) -> None:
    values = [content if isinstance(content, bytes) else json.dumps(content).encode() for content, _ in BAD]
    outcome = run(spark, lake, ORDERS, [*values, b' {"op": "t"} \n'])
    assert [row["_op"] for row in outcome.rows] == ["t"]
    reasons = {bad_row["offset"]: (bad_row["stage"], bad_row["code"], bad_row["message"]) for bad_row in outcome.bad}
    assert sorted(reasons) == list(range(len(BAD)))
    for index, (value, message) in enumerate(BAD):
        assert reasons[index][:2] == ("value", "undecodable"), value
        assert reasons[index][2].startswith(message), value


@pytest.mark.spark
def test_a_required_column(spark: SparkSession, lake: Path) -> None:
    """A delete may know the key alone, and a truncate knows nothing."""
    specs = """
topic: orders
value: debezium_json
columns: {id: bigint, customer: {type: string, required: true}}
"""
    changes: list[Any] = [
        {"op": "c", "after": {"id": 1}}, {"op": "u", "before": {"customer": "a"}, "after": {"id": 2, "customer": None}},
        {"op": "r", "after": {"id": 3, "customer": ""}}, {"op": "d", "before": {"id": 4}}, {"op": "t"},
    ]  # fmt: skip
    outcome = run(spark, lake, specs, [json.dumps(change).encode() for change in changes])
    assert sorted(str(row["id"]) for row in outcome.rows) == ["3", "4", "None"]
    missing = [(bad_row["offset"], bad_row["code"], bad_row["message"]) for bad_row in outcome.bad]
    assert sorted(missing) == [(offset, "missing_field", "`customer` is required and missing or null") for offset in (0, 1)]


@pytest.mark.spark
def test_a_table_of_many_columns(spark: SparkSession, lake: Path) -> None:
    names = [f"c{index}" for index in range(60)]
    specs = f"topic: orders\nvalue: debezium_json\ncolumns: {{{', '.join(f'{name}: int' for name in names)}}}\n"
    image = {name: index for index, name in enumerate(names)}
    values = [{"op": "c", "after": image}, {"payload": {"op": "d", "before": image}}, {"op": "c", "after": {"c7": "x"}}]
    outcome = run(spark, lake, specs, [json.dumps(value).encode() for value in values])
    assert [{name: row[name] for name in names} for row in outcome.rows] == [image] * 2
    assert [bad_row["message"] for bad_row in outcome.bad] == ['field `after.c7`: wanted int, found "x"']


@pytest.mark.spark
def test_numbers_that_are_times_and_bytes_that_are_decimals(spark: SparkSession, lake: Path) -> None:
    """Plain JSON has them, too, from the first to the last value that a column can hold."""
    specs = """
topic: orders
value: json
columns:
  micros: {type: timestamp, format: epoch_micros}
  days: {type: date, format: epoch_days}
  whole: {type: "decimal(38,0)", format: base64}
  parts: {type: "decimal(20,4)", format: base64}
"""

    def encoded(number: int) -> str:
        return b64encode(number.to_bytes(max(1, (number.bit_length() + 8) // 8), "big", signed=True)).decode()

    largest, utc = 10**38 - 1, timezone.utc
    fitting_rows: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"micros": 0, "days": 0, "whole": encoded(0), "parts": encoded(0)},
         {"micros": datetime(1970, 1, 1, tzinfo=utc), "days": date(1970, 1, 1), "whole": Decimal(0), "parts": Decimal("0.0000")}),
        ({"micros": -62135596800000000, "days": -719162, "whole": encoded(-largest), "parts": encoded(-1)},
         {"micros": datetime(1, 1, 1, tzinfo=utc), "days": date(1, 1, 1), "whole": Decimal(-largest), "parts": Decimal("-0.0001")}),
        ({"micros": 253402300799999999, "days": 2932896, "whole": encoded(largest), "parts": encoded(10**20 - 1)},
         {"micros": datetime(9999, 12, 31, 23, 59, 59, 999999, utc), "days": date(9999, 12, 31), "whole": Decimal(largest),
          "parts": Decimal("9999999999999999.9999")}),
        ({"whole": 12, "parts": 1.5}, {"whole": Decimal(12), "parts": Decimal("1.5000")}),
        *(({"whole": encoded(number), "parts": encoded(number)}, {"whole": Decimal(number), "parts": Decimal(number) / 10000})
          for number in (127, 128, -128, -129, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, -(2**64))),
    ]  # fmt: skip
    misfits: list[dict[str, Any]] = [
        {"micros": 253402300800000000}, {"micros": -62135596800000001}, {"micros": 1.5}, {"micros": "1"}, {"micros": "2026-01-01"},
        {"days": 2932897}, {"days": "2026-01-01"}, {"whole": encoded(10**38)}, {"whole": encoded(-(2**127))}, {"whole": encoded(2**200)},
        {"parts": encoded(10**20)}, {"whole": "é"}, {"whole": ""}, {"whole": True}, {"whole": [1]},
    ]  # fmt: skip
    outcome = run(
        spark, lake, specs, [json.dumps(record).encode() for record in (*(fields for fields, _ in fitting_rows), *misfits)]
    )
    assert by_name(outcome, dict.fromkeys(map(str, range(len(fitting_rows))))) == {
        str(index): row for index, (_, row) in enumerate(fitting_rows)
    }
    assert sorted((bad_row["offset"], bad_row["code"]) for bad_row in outcome.bad) == [
        (len(fitting_rows) + index, "undecodable") for index in range(len(misfits))
    ]


def shape(name: str, *children: ColumnShape) -> ColumnShape:
    return (
        ColumnShape(name, Struct(tuple(Field(child.name, child.type) for child in children)), inside=children)
        if children
        else ColumnShape(name, STRING)
    )


IMAGE = (ColumnShape("id", BIGINT, "The order"), ColumnShape("customer", STRING))
SOURCE = shape("source", ColumnShape("ts_ms", BIGINT), ColumnShape("db", STRING))
ENVELOPE = (shape("before", *IMAGE), shape("after", *IMAGE), SOURCE, ColumnShape("op", STRING), ColumnShape("ts_ms", BIGINT))


def test_the_columns_of_an_envelope() -> None:
    assert debezium_avro.unwrap(ENVELOPE) == (
        *IMAGE,
        *(ColumnShape(column.name, column.type, column.doc) for column in CHANGES.columns),
    )


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (IMAGE, "an envelope of Debezium has `op`, and this schema has not"),
        (ENVELOPE[:2] + ENVELOPE[3:], "an envelope of Debezium has `source`, and this schema has not"),
        ((ColumnShape("before", STRING), ColumnShape("after", STRING), *ENVELOPE[2:]), "`before` and `after` are no records"),
        ((shape("before", IMAGE[0]), *ENVELOPE[1:]), "`before` and `after` have other fields"),
        ((*ENVELOPE[:2], shape("source", ColumnShape("db", STRING)), *ENVELOPE[3:]), "`source` has no `ts_ms`"),
        (
            (shape("before", ColumnShape("_OP", STRING)), shape("after", ColumnShape("_OP", STRING)), *ENVELOPE[2:]),
            "the table has a column `_OP`, which Sluice makes itself",
        ),
    ],
)
def test_what_is_no_schema_of_an_envelope(shapes: tuple[ColumnShape, ...], message: str) -> None:
    with pytest.raises(Unsupported) as error:
        debezium_avro.unwrap(shapes)
    assert error.value.message == message
    assert error.value.hint
