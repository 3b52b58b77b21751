"""Names, values, keys and headers that would do harm in SQL, in a path or in a line of a log if nothing escaped them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.types import STRING
from framework.core.iceberg import table_state
from framework.core.rows import counts
from framework.core.rows.frame import frame_of
from framework.core.rules.protocol import Position, next_range
from framework.core.run.run import batches
from framework.operations.trials.preview import preview
from framework.operations.trials.trial import Trials
from framework.plan import Pipeline, TableChanges
from framework.plan.change import Change
from tests.support.hostile_texts import TEXTS, message, written
from tests.support.project import TRADES, Project
from tests.support.rebuilds import rebuilt, run_rebuild
from tests.support.refusals import accept_it
from tests.support.registry_project import Registered
from tests.support.selection import few

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

LATER = 'later. `${env:HOME}\' "x.y"'
NUMBER = "a number `${env:HOME}'"
INTEGER = {"type": "integer"}
NESTED = (*TEXTS, "_sluice_value", "_sluice_text", "_sluice_end", "_sluice_decoded", "_sluice_bad", "_file")
COPY = """
---
pipeline: copy
from: {{table: {namespace}.trades}}
steps:
  - derive: {{ratio: "10 / (id - 2)"}}
into: {{table: {namespace}.copy, write: replace}}
"""


@pytest.fixture
def shop(tmp_path: Path, lake: Path, kafka: str, spark: SparkSession, registry: str) -> Iterator[Registered]:
    registered = Registered(tmp_path, lake, kafka, spark, registry)
    registered.format = "json_schema"
    registered.make_topic(1)
    yield registered
    registered.close()


def schema(*names: str, number: Mapping[str, str] = INTEGER) -> str:
    text = {"type": "string"}
    nested = {"type": "object", "properties": dict.fromkeys(NESTED, text)}
    numbers = {"id": INTEGER, NUMBER: number}
    properties = {**numbers, **dict.fromkeys((*TEXTS, *names), text), "nested": nested, "last": {"type": "integer"}}
    return json.dumps({"type": "object", "properties": properties})


def row_of(id_: int, *names: str) -> Mapping[str, Any]:
    return {
        "id": id_,
        NUMBER: id_,
        **{name: name for name in (*TEXTS, *names)},
        "nested": {name: name for name in NESTED},
        "last": id_,
    }


def scanned(pipeline: Pipeline) -> list[dict[str, Any]]:
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return rows


def landed(project: Project) -> dict[int, dict[str, Any]]:
    rows = ({name: value for name, value in row.items() if not name.startswith("_kafka")} for row in project.rows())
    return {row["id"]: row for row in rows}


@pytest.mark.long
def test_registered_names_are_names_everywhere(shop: Registered) -> None:
    """The names survive a batch, its bad rows, a preview, a table from the table, a changed schema and a rebuild."""
    old_id = shop.register(schema(), kind="JSON")
    shop.send([message(old_id, row_of(1)), message(old_id, {**row_of(2), NUMBER: "x"}), message(old_id, row_of(3))], partition=0)
    shop.send([message(old_id, {**row_of(5), "last": "x"})], partition=0)  # all other fields come before the bad one
    context = shop.context()
    previewed = preview(context, context.plan.pipelines[0], 4)
    assert [row.fate for message in previewed.messages for row in message.rows] == ["lands", "bad", "lands", "bad"]
    assert previewed.messages[0].rows[0].after[0] == row_of(1)
    shop.run()
    assert landed(shop) == {1: row_of(1), 3: row_of(3)}
    assert [row["message"] for row in shop.rows(bad=True)] == [
        f'field `{NUMBER}`: wanted bigint, found "x"',
        'field `last`: wanted bigint, found "x"',
    ]
    shop.assert_exactly_once()

    new_id = shop.register(schema(LATER), kind="JSON")
    shop.send([message(new_id, row_of(4, LATER))], partition=0)
    shop.run()
    later = {LATER: None}
    assert landed(shop) == {1: {**row_of(1), **later}, 3: {**row_of(3), **later}, 4: row_of(4, LATER)}

    shop.template = shop.template.replace(
        "into: {{table: {namespace}.trades", "steps:\n  - derive: {{more: id + 1}}\ninto: {{table: {namespace}.trades"
    )
    context = shop.context()
    assert rebuilt(context, context.plan.pipelines[0])
    assert landed(shop)[4] == {**row_of(4, LATER), "more": 5}
    shop.assert_exactly_once()

    shop.template += COPY
    context = shop.context()
    copy = context.plan.pipeline("copy")
    assert copy is not None
    assert [(batch.rows, batch.bad) for batch in batches(context, copy)] == [(3, 0)]
    assert isinstance(copy.source, TableChanges)
    trials = Trials(shop.spark, context.plan)
    source = replace(copy.source, identifier=f"given_{shop.namespace}.trades")
    trials.put(source, [row_of(9)])
    trials.put(source, [row_of(10)])
    trial_rows = shop.spark.table(f"lake.{source.identifier}").collect()
    assert [{name: row[name] for name in TEXTS} for row in trial_rows] == [{name: name for name in TEXTS}] * 2

    copied_rows = {row["id"]: row for row in scanned(copy)}
    assert {name: value for name, value in copied_rows[4].items() if name in TEXTS} == {name: name for name in TEXTS}


PARTS = """
variables: parts
values: {{brace: "{{"}}
---
"""
# Names that a spec can give to columns of a key; columns of values have the other names.
KEYS = ("k\\", "k\u00e9", "ke\u0301", "%s-/*")
PLAIN = re.compile(r"[^\s(),]+")  # a name that `partition_by` can take
NARROW = {"type": "integer", "connect.type": "int32"}
NEW_NAMES = {"a.b": "b.c `${env:HOME}'", "a`b": "a.b", LATER: "${spark.app.name}\u2028"}


def key(number: int) -> bytes:
    return json.dumps({name: TEXTS[number + index] for index, name in enumerate(KEYS)}).encode()


def keyed(number: int, id_: int, *names: str, **values: Any) -> dict[str, Any]:
    return {**row_of(id_, *names), **json.loads(key(number)), **values}


def into(write: str, partition_by: Iterable[str], sort_by: Iterable[str]) -> str:
    layout = f"partition_by: {written(*partition_by)}, sort_by: {written(*sort_by)}"
    return f", write: {write}, keys: {written(*KEYS)}, deletes: tombstones, {layout}"


def merged(project: Project) -> list[dict[str, Any]]:
    """The rows without Kafka's columns; a version says only whether it has ended."""
    rows = []
    for row in sorted(project.rows(), key=lambda row: (row["id"], row["_kafka_offset"])):
        values = {name: value for name, value in row.items() if not name.startswith("_kafka") and name != "valid_from"}
        rows.append({**values, "valid_to": values["valid_to"] is not None} if "valid_to" in values else values)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("write", few(["upsert", "history"]))
def test_columns_of_any_name_are_merged_partitioned_sorted_widened_and_renamed(shop: Registered, write: str) -> None:
    shop.template = PARTS + shop.template
    shop.topic_more = f"key: {{format: json, columns: {json.dumps(dict.fromkeys(KEYS, 'string'))}}}"
    parts = [name for name in TEXTS if PLAIN.fullmatch(name) and len(name) < 256]
    shop.into_more = into(
        write, [*parts[::2], *(f"truncate(3, {name})" for name in (*parts[1::2], *KEYS))], (NUMBER, *TEXTS, *KEYS)
    )
    old_id = shop.register(schema(number=NARROW), kind="JSON")
    shop.send_keys((key(id_), message(old_id, {**row_of(id_), NUMBER: "x" if id_ == 4 else id_})) for id_ in (1, 2, 3, 4))
    shop.run()
    assert [row["message"] for row in shop.rows(bad=True)] == [f'field `{NUMBER}`: wanted int, found "x"']

    new_id = shop.register(schema(LATER), kind="JSON")
    shop.into_more = into(write, [f"bucket(4, {name})" for name in (*parts, *KEYS)], (LATER, *reversed(TEXTS)))
    large = json.loads(f'{{"{NUMBER}": {2**40}}}')
    shop.send_keys(
        [(key(1), message(new_id, {**row_of(5, LATER), **large})), (key(2), None), (key(4), message(old_id, row_of(6)))]
    )
    shop.run()
    current_rows = [keyed(3, 3, **{LATER: None}), keyed(1, 5, LATER, **large), keyed(4, 6, **{LATER: None})]
    ended = [keyed(number, number, **{LATER: None}) for number in (1, 2)]
    if write == "history":
        current_rows = [{**row, "valid_to": False, "is_current": True} for row in current_rows]
        current_rows += [{**row, "valid_to": True, "is_current": False} for row in ended]
    expected = sorted(current_rows, key=lambda row: int(row["id"]))
    assert merged(shop) == expected
    run_rebuild(shop)
    assert merged(shop) == expected

    # A JSON Schema cannot say what a column was called before.
    lake, planned = shop.context().lake(shop.pipeline), shop.pipeline.table
    changes = [
        Change("alias", "", shop.pipeline.where, allowed=True, path=(old,), old=STRING, new=STRING, to=new)
        for old, new in NEW_NAMES.items()
    ]
    lake.change(lake.load(planned.identifier), changes, planned)
    assert merged(shop) == [{NEW_NAMES.get(name, name): value for name, value in row.items()} for row in expected]


LABELS = r"""
---
pipeline: trades
doc: "It's `$${{var:brace}}env:HOME}}` \\ of\nmany lines"
from: {{topic: trades}}
steps:
  - flag:
      into: size
      rules: [{{when: price > 900, label: "$${{var:brace}}env:HOME}}"}}]
      otherwise: "$${{var:brace}}spark.app.name}}'\\"
  - derive: {{ratio: 1 / (id - 3)}}
expect:
  - {{column: size, one_of: ["$${{var:brace}}env:HOME}}", "$${{var:brace}}spark.app.name}}'\\"], else: stop}}
  - {{column: size, matches: "[$].*", else: stop}}
into: {{table: {namespace}.trades}}
"""


def test_what_a_spec_says_is_text_in_sql(project: Project) -> None:
    project.template = PARTS + TRADES.partition("\n---\n")[0] + LABELS
    project.make_topic(1)
    project.send_good(4, partition=0)
    project.send([json.dumps({"id": 5, "price": 1000}).encode()], partition=0)
    (batch,) = project.run()
    assert (batch.rows, batch.bad, batch.warnings) == (4, 1, ())
    sizes = {row["id"]: row["size"] for row in project.rows()}
    assert sizes == {**dict.fromkeys((0, 1, 2), "${spark.app.name}'\\"), 5: "${env:HOME}"}
    table = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None and table.properties["comment"] == project.pipeline.doc


Headers = list[tuple[str, bytes | None]]
# The producer ends a header's name at a NUL.
HEADERS: Headers = [
    *((name, name.encode()) for name in TEXTS if "\0" not in name),
    *(("twice", b"1"), ("twice", b"2"), ("", b""), ("none", None), ("bytes", b"\xff\0")),
]


def send_with_headers(project: Project, value: bytes, count: int, headers: Headers, key: bytes) -> None:
    project.produce([{"value": value, "key": key, "headers": list(headers), "partition": 0}] * count)


def header_rows(headers: Headers) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in headers]


@pytest.mark.parametrize("bad_rows", ["quarantine", "stop"])
def test_bad_rows_keep_keys_and_headers_as_they_are(project: Project, bad_rows: str) -> None:
    project.more = f"bad_rows: {bad_rows}"
    project.make_topic(1, **{"max.message.bytes": "10000000"})
    keys = [name.encode() for name in TEXTS]
    for key in keys:
        send_with_headers(project, b"not json " + key, 1, HEADERS, key)
    if bad_rows == "stop":
        accept_it(project)
    project.run()
    rows = project.rows(bad=True)
    assert [(row["key"], row["value"]) for row in rows] == [(key, b"not json " + key) for key in keys]
    for row in rows:
        assert row["headers"] == header_rows(HEADERS)
    project.assert_exactly_once()


def test_headers_are_counted_before_they_travel_to_the_driver(project: Project) -> None:
    """Headers count like values and keys: 8,000 bad messages with such a header once ended Spark, and each later run, too."""
    project.make_topic(1, **{"max.message.bytes": "10000000"})
    large: Headers = [("trace", b"h" * 200_000), ("name", b"n")]
    send_with_headers(project, b"not json", 20, large, b"k")
    send_with_headers(project, b"not json", 5, [("name", b"n")], b"k")
    context, pipeline = project.context(), project.pipeline
    source = context.source(pipeline)
    topic = source.topic_state()
    nowhere = Position(attempt="", batch=0, cluster="", topics={}, ends=dict.fromkeys(topic.ends, 0))
    range_ = next_range(nowhere, topic, 1000)
    assert range_ is not None
    frame = frame_of(source.read(context.spark, range_, 1), pipeline, range_.size)
    frame.good.write.format("noop").mode("append").save()
    counted = counts.counted(context.spark, pipeline, frame.observed)
    assert counted.carried is not None
    assert (counted.bad, counted.too_large) == (25, 20)
    assert counted.carried.selectExpr("sum(octet_length(cast(headers as string)))").collect()[0][0] < 1000

    project.run()
    assert [row["headers"] for row in project.rows(bad=True)] == [header_rows(large)] * 20 + [header_rows([("name", b"n")])] * 5
    project.assert_exactly_once()
