"""Messages that are changed to do harm, through Spark into a table: each is one row with the values that an independent reader has,
or one bad row with a code.

The readers are fastavro and Google's library. Where the project's decoder is stricter than fastavro, `STRICTER` says in what. The
messages are the same at each run; `FUZZ_SEED=7` in the environment makes others.
"""

from __future__ import annotations

import json
import math
import os
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.run.run import batches
from framework.host.plans import make
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Table
from tests.support import mutated_avro, mutated_protobuf
from tests.support.memory_messages import append
from tests.support.mutated_avro import Unreadable
from tests.support.project import BASE
from tests.support.registry_answers import serving, whole
from tests.support.registry_project import record
from tests.support.selection import few

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPEC = """
topic: orders
value: {format}
{more}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: {namespace}.orders, kafka_columns: true}}
"""
STRICTER = (
    "a boolean is neither 0 nor 1", "an int has more than 32 bits", "a number has more than 64 bits", "there is no type -",
    "there is no symbol -", "a list claims more items than there are bytes",
)  # fmt: skip
"""Bytes that Avro's specification does not allow, and fastavro reads: as true, as a larger number, cut to 64 bits, counted from the end,
and 2^63 items as none."""
PASSED_OVER = ("UnicodeDecodeError", "OverflowError", "year 10000", "ordinal must be", "more digits")
"""Faults of fastavro's in values that no column takes: of these only the length must be right."""
SEED = int(os.environ.get("FUZZ_SEED", "31"))


@dataclass(frozen=True)
class Landed:
    """Rows and bad rows by offset, as the tables have them."""

    rows: Mapping[int, dict[str, Any]]
    bad: Mapping[int, tuple[str, str]]  # the code and the reason


def land(
    lake: Path, spark: SparkSession, format_: str, schemas: Mapping[int, str], sent: list[bytes], options: str = ""
) -> Landed:
    kind = {"schemaType": "PROTOBUF"} if format_ == "protobuf" else {}

    def answer(path: str) -> Any:
        number = path.rpartition("/")[2]
        if path.endswith("/versions"):
            return sorted(schemas)
        if number.isdigit() and int(number) in schemas:
            return {"id": int(number), "version": int(number), "subject": "orders-value", "schema": schemas[int(number)], **kind}
        return whole(b'{"error_code": 40403, "message": "Schema not found"}', "404 Not Found")

    with serving(answer) as server:
        namespace = f"n{uuid.uuid4().hex[:10]}"
        plan = make(written(lake, server.url, SPEC.format(format=format_, namespace=namespace, more=options)))
        (pipeline,) = plan.pipelines
        messages: list[Message] = []
        for value in sent:
            append(messages, "orders", value, at=datetime(2026, 1, 1, tzinfo=timezone.utc), batch=1)
        context = Context(plan, spark=lambda: spark, source=GivenMessages(tuple(messages), 1, 2))
        list(batches(context, pipeline))
    rows, bad = tables_of(spark, pipeline.table)
    offsets = Counter(row["_kafka_offset"] for row in rows) + Counter(row["offset"] for row in bad)
    assert offsets == Counter(range(len(sent))), "a message is lost or there twice"
    return Landed({row["_kafka_offset"]: row for row in rows}, {row["offset"]: (row["code"], row["message"]) for row in bad})


def tables_of(spark: SparkSession, table: Table) -> list[list[dict[str, Any]]]:
    """The rows, and the bad rows. Spark reads them: PyIceberg reads a list of structs that is null as an empty one."""
    names = [f"lake.{name}" for name in (table.identifier, table.bad_rows)]
    return [spark.table(name).toArrow().to_pylist() if spark.catalog.tableExists(name) else [] for name in names]


def written(lake: Path, registry: str, specs: str) -> Path:
    folder = lake / "specs" / uuid.uuid4().hex
    folder.mkdir(parents=True)
    base = BASE.format(bootstrap="127.0.0.1:1").replace("---\ncatalog", f'registry: "{registry}"\n---\ncatalog', 1)
    (folder / "main.yaml").write_text(f"{base}---\n{specs}")
    return folder


def comparable(value: Any) -> Any:
    """Floats by their bits, and maps as dictionaries."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value).hex()
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        assert len(dict(value)) == len(value), "a key is there twice"
        return {key: comparable(item) for key, item in value}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()} or []
    return value


def disagreements(landed: Landed, sent: list[bytes], reader: Callable[[bytes], dict[str, Any]]) -> list[Any]:
    """Messages that the table and the reader show differently: the bytes, what differs, our value, and the reader's."""
    different: list[Any] = []
    for offset, data in enumerate(sent):
        try:
            expected: dict[str, Any] = reader(data)
        except Unreadable as error:
            if offset in landed.rows:
                different.append((data, "a row", landed.rows[offset], str(error)))
            continue
        if offset in landed.bad:
            different.append((data, "a bad row", landed.bad[offset][1], expected))
            continue
        row = landed.rows[offset]
        different += [
            (data, name, row[name], expected[name]) for name in expected if name in row and not same(row[name], expected[name])
        ]
    return different


def same(value: Any, expected: Any) -> bool:
    if isinstance(expected, mutated_protobuf.Json):
        # A whole number has no point in our JSON, and so minus zero has no sign.
        return value is not None and bool(json.loads(value, parse_int=float) == expected.value)
    return bool(comparable(value) == comparable(expected))


COUNTS = few([400, 6_000], 400)
AVRO = {id_: json.dumps(schema) for id_, schema in mutated_avro.SCHEMAS.items()}
PROTOBUF = {id_: schema.text for id_, schema in mutated_protobuf.SCHEMAS.items()}


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_avro_is_what_fastavro_reads_or_a_bad_row(lake: Path, spark: SparkSession, count: int) -> None:
    chance = Random(SEED)
    sent = [mutated_avro.message(chance) for _ in range(count)]
    landed = land(lake, spark, "avro", AVRO, sent)
    different = disagreements(landed, sent, mutated_avro.values)
    assert [difference for difference in different if difference[1] != "a bad row" or not is_deliberate(*difference)] == []
    assert all(code for code, _ in landed.bad.values())
    assert 0.15 < len(landed.rows) / count < 0.6


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_avro_of_which_few_fields_are_columns_never_gives_another_value(
    lake: Path, spark: SparkSession, count: int
) -> None:
    chance = Random(SEED + 1)
    sent = [mutated_avro.message(chance) for _ in range(count)]
    columns = "columns: {id: bigint, small: int, deep: 'struct<n int>'}"
    landed = land(lake, spark, "avro", AVRO, sent, columns)
    different = [difference for difference in disagreements(landed, sent, first_level) if not is_deliberate(*difference)]
    assert different == []


def first_level(data: bytes) -> dict[str, Any]:
    """The row, with only the first level of `deep`, which is a column."""
    row = mutated_avro.values(data)
    return {**row, "deep": row["deep"] and {"n": row["deep"]["n"]}}


def is_deliberate(_data: bytes, kind: str, ours: Any, theirs: Any) -> bool:
    if kind == "a bad row":
        return any(reason in ours for reason in STRICTER)
    return kind == "a row" and any(reason in theirs for reason in PASSED_OVER)


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_protobuf_is_what_googles_library_reads_or_a_bad_row(lake: Path, spark: SparkSession, count: int) -> None:
    chance = Random(SEED)
    sent = [mutated_protobuf.message(chance) for _ in range(count)]
    landed = land(lake, spark, "protobuf", PROTOBUF, sent)
    assert disagreements(landed, sent, mutated_protobuf.values) == []
    assert all(code for code, _ in landed.bad.values())
    assert 0.15 < len(landed.rows) / count < 0.6


# A registry that turns hostile once its first schema is planned

GOOD = json.dumps(record(("id", "long")))
OTHER_TYPE = json.dumps(record(("id", "string")))
LATER: dict[str, tuple[Any, str | None, str]] = {
    "a page": (whole(b"<html>"), "registry-strange", ""), "half": (whole(b'{"schema": "'), "registry-strange", ""),
    "no login": (whole(b"{}", "401 No"), "registry-refused", ""), "an error": (whole(b"{}", "500 No"), "registry-unreachable", ""),
    "busy": (whole(b"{}", "429 No", "Retry-After: 100000"), "registry-unreachable", ""),
    "none": (whole(b'{"error_code": 40403, "message": "no"}', "404 No"), None, "unknown_schema"),
    "no Avro": ({"schema": "hello"}, None, "wrong_schema"), "another type": ({"schema": OTHER_TYPE}, None, "wrong_schema"),
    "another kind": ({"schema": 'syntax = "proto3"; message M { int64 id = 1; }', "schemaType": "PROTOBUF"}, None, "wrong_schema"),
    "itself": ({"schema": json.dumps(record(("id", ["null", "Trade"])))}, None, "wrong_schema"),
    "a reference to itself": ({"schema": GOOD, "references": [{"name": "a", "subject": "s", "version": 1}]}, "registry-strange", ""),
}  # fmt: skip


@pytest.mark.usefixtures("registry_away")
@pytest.mark.parametrize("name", LATER)
def test_what_a_hostile_answer_describes_is_never_a_row(lake: Path, spark: SparkSession, name: str) -> None:
    """A message of the known schema becomes its row. The other waits, or is a bad row if the registry says that no schema fits."""
    hostile_answer, code, bad = LATER[name]

    def answer(path: str) -> Any:
        if path == "/schemas/ids/7":
            return hostile_answer
        if path == "/subjects/orders-value/versions":
            return [1]
        references = [{"name": "a", "subject": "s", "version": 1}] if path.startswith("/subjects/s/") else []
        return {"id": 1, "version": 1, "schema": GOOD, "references": references}

    with serving(answer) as server:
        namespace = f"n{uuid.uuid4().hex[:10]}"
        plan = make(written(lake, server.url, SPEC.format(format="avro", namespace=namespace, more="")))
        (pipeline,) = plan.pipelines
        sent: list[Message] = []
        for id_ in (1, 7):
            append(
                sent, "orders", b"\0" + id_.to_bytes(4, "big") + b"\x02", at=datetime(2026, 1, 1, tzinfo=timezone.utc), batch=1
            )
        context = Context(plan, spark=lambda: spark, source=GivenMessages(tuple(sent), 1, 1))
        if code:
            with pytest.raises(SluiceError) as error:
                list(batches(context, pipeline))
            assert (error.value.code, bool(error.value.hint)) == (code, True)
        else:
            list(batches(context, pipeline))
    rows, bad_rows = tables_of(spark, pipeline.table)
    assert [(row["id"], row["_kafka_offset"]) for row in rows] == ([] if code else [(1, 0)])
    assert [(row["offset"], row["code"]) for row in bad_rows] == ([] if code else [(1, bad)])
