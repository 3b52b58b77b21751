"""`sluice preview` shows what becomes of the next messages, step by step, and writes nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from framework.base.errors import RolledBack
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.run.run import batches
from framework.host.cli import main
from framework.host.cli._terminal import console
from framework.host.plans import make
from framework.operations.trials import preview_text
from framework.operations.trials.preview import Preview, PreviewedMessage, Row, preview
from framework.plan import Plan
from tests.support.project import BASE, Project, good, plan_for
from tests.support.registry_project import Registered, framed, record
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SPECS = """
topic: orders
kafka_name: {topic}
value: json
columns:
  id: {{type: bigint, required: true}}
  items: array<struct<name string, price double>>
  at: timestamp
  cents: decimal(20,2)
---
pipeline: orders
from: {{topic: orders}}
steps:
  - derive: {{ratio: 100 / (id - 7)}}
  - explode: {{column: items, into: item}}
  - flatten: [item]
  - shout: item_name
  - filter: item_price > 0
  - flag: {{into: size, rules: [{{when: item_price > 900, label: LARGE}}], otherwise: NORMAL}}
  - sql: select id, item_name as name, item_price, at, cents, size from input where id <> 8
into: {{table: {namespace}.orders}}
expect:
  - {{column: item_price, between: [0, 5000]}}
  - {{name: cheap, when: item_price < 1000, else: warn}}
---
pipeline: large
from: {{table: {namespace}.orders}}
steps: [{{filter: size = 'LARGE'}}]
into: {{table: {namespace}.large, write: replace}}
"""
SHOUT = '''"""Shouts."""
from sluice.steps import Resolved
Written = str
def resolve(step, rows):
    return Resolved(rows.columns, ((step.value, f"upper({step.value})"),), says=(f"{step.value} in capitals",))
'''


def make_plan(folder: Path, bootstrap: str = "127.0.0.1:1", topic: str = "orders", namespace: str = "shop") -> Plan:
    """The plan of a project in a folder, which has a step of its own."""
    (folder / "pipelines" / "steps").mkdir(parents=True)
    (folder / "pipelines" / "steps" / "shout.py").write_text(SHOUT)
    (folder / "specs").mkdir()
    specs = SPECS.format(topic=topic, namespace=namespace)
    (folder / "specs" / "all.yaml").write_text(f"{BASE.format(bootstrap=bootstrap)}---{specs}")
    return make(folder / "specs")


# Printed text

READ: dict[str, Any] = {"id": 1, "items": [{"name": "pen", "price": 950.5}], "at": "2026-01-05T10:00:00Z", "cents": "0.10"}
EXPLODED = {"id": 1, "ratio": -16.5, "at": READ["at"], "cents": "0.10"}
LANDS = Row(
    item="1",
    after=(
        READ,
        {**READ, "ratio": -16.5},
        {**EXPLODED, "item": READ["items"][0]},
        {**EXPLODED, "item_name": "pen", "item_price": 950.5},
        {**EXPLODED, "item_name": "PEN", "item_price": 950.5},
        {**EXPLODED, "item_name": "PEN", "item_price": 950.5},
        {**EXPLODED, "item_name": "PEN", "item_price": 950.5, "size": "LARGE"},
        {"id": 1, "name": "PEN", "item_price": 950.5, "at": READ["at"], "cents": "0.10", "size": "LARGE"},
        {"id": 1, "name": "PEN", "item_price": 950.5, "at": READ["at"], "cents": "0.10", "size": "LARGE"},
    ),
    fate="lands",
    unexpected=("cheap",),
)
FREE = {**EXPLODED, "item_name": "gift", "item_price": 0.0}
FILTERED = Row(
    item="2",
    after=(
        READ,
        {**READ, "ratio": -16.5},
        {**EXPLODED, "item": {"name": "gift", "price": 0.0}},
        FREE,
        {**FREE, "item_name": "GIFT"},
    ),
    fate="filtered",
)
NOT_JSON = "the value is not JSON: it is cut off"
BAD = Row(item=None, after=(), fate="bad", code="undecodable", stage="value", message=NOT_JSON)
VALUE = json.dumps(READ).encode()
MESSAGES = (
    PreviewedMessage(
        topic="orders",
        partition=0,
        offset=7,
        timestamp="2026-01-05T10:00:00.000Z",
        key=b"k\xff",
        value=VALUE,
        rows=(LANDS, FILTERED),
    ),
    PreviewedMessage(
        topic="orders", partition=2, offset=1, timestamp="2026-01-05T10:00:01.000Z", key=None, value=b"not\x1b json", rows=(BAD,)
    ),
    PreviewedMessage(
        topic="orders",
        partition=2,
        offset=2,
        timestamp="2026-01-05T10:00:02.000Z",
        key=None,
        value=None,
        rows=(Row(item=None, after=LANDS.after[:2], fate="filtered"),),
    ),
)
PAGE = """\
orders: the next 3 messages of 1,005 that wait in orders
  1 derive   ratio = 100 / (id - 7)
  2 explode  a row for each item of items
  3 flatten  item → item_name, item_price
  4 shout    item_name in capitals
  5 filter   item_price > 0
  6 flag     LARGE when item_price > 900
             NORMAL otherwise
  7 sql      select id, item_name as name, item_price, at, cents, size from input where id <> 8
  8 expect   item_price is between 0 and 5000
  ·          as before

partition 0, offset 7, 2026-01-05T10:00:00.000Z, key k�
  {"id": 1, "items": [{"name": "pen", "price": 950.5}], "at": "2026-01-05T10:00:00Z", "cents": "0.1…
  row 1 of 2: item 1
              read                            1 derive  2 explode                 3 flatten  4 shout
  id          1                               ·         ·                         ·          ·
  items       [{"name": "pen", "price": 950…  ·         (gone)
  at          2026-01-05T10:00:00Z            ·         ·                         ·          ·
  cents       0.10                            ·         ·                         ·          ·
  ratio                                       -16.5     ·                         ·          ·
  item                                                  {"name": "pen", "price"…  (gone)
  item_name                                                                       pen        PEN
  item_price                                                                      950.5      ·
              5 filter              6 flag  7 sql   8 expect
  id          1                     ·       ·       ·
  at          2026-01-05T10:00:00Z  ·       ·       ·
  cents       0.10                  ·       ·       ·
  ratio       -16.5                 ·       (gone)
  item_name   PEN                   ·       (gone)
  item_price  950.5                 ·       ·       ·
  size                              LARGE   ·       ·
  name                                      PEN     ·
  lands in shop.orders; not as `cheap` expects

  row 2 of 2: item 2
              2 explode                       3 flatten  4 shout
  id          1                               ·          ·
  ratio       -16.5                           ·          ·
  at          2026-01-05T10:00:00Z            ·          ·
  cents       0.10                            ·          ·
  item        {"name": "gift", "price": 0.0}  (gone)
  item_name                                   gift       GIFT
  item_price                                  0.0        ·
  filtered out by 5 filter

partition 2, offset 1, 2026-01-05T10:00:01.000Z
  not� json
  bad row, value: undecodable: the value is not JSON: it is cut off

partition 2, offset 2, 2026-01-05T10:00:02.000Z
  (no value)
         read                               1 derive
  id     1                                  ·
  items  [{"name": "pen", "price": 950.5}]  ·
  at     2026-01-05T10:00:00Z               ·
  cents  0.10                               ·
  ratio                                     -16.5
  no items for 2 explode
"""


def printed_text(tmp_path: Path, result: Preview, name: str = "orders", stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    pipeline = make(tmp_path / "specs").pipeline(name)
    assert pipeline is not None
    preview_text.show(console(stream), pipeline, result)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_a_page_shows_all_parts(tmp_path: Path) -> None:
    make_plan(tmp_path)
    assert printed_text(tmp_path, Preview(MESSAGES, "next", 1005)) == PAGE


@pytest.mark.parametrize("width", [80, 120])
def test_a_page_fits_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    make_plan(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    page = printed_text(tmp_path, Preview(MESSAGES, "next", 1005), stream=Terminal())
    page = page[page.index("\n\n") :]
    assert width * 0.9 < max(map(len, page.splitlines())) <= width
    assert all(name in page for name in ("item_price", "1 derive", "7 sql", "lands in shop.orders; not as `cheap` expects"))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (Preview((), "latest", 0), "orders: nothing to show, there are no messages in orders\n"),
        (Preview((), "next", 5), "orders: nothing to show, no messages are at the offsets that wait in orders\n"),
        (Preview((MESSAGES[1],), "latest", 0), "orders: nothing waits; the last 1 message of orders\n"),
        (Preview((MESSAGES[1],), "latest", None), "orders: the last 1 message of orders\n"),
        (Preview((MESSAGES[1],), "earliest", None), "orders: the first 1 message of orders\n"),
        (
            Preview((MESSAGES[1],), "latest", None, RolledBack("rolled-back", "it was rolled back", "accept it")),
            "a run would be refused: rolled-back: it was rolled back\n  hint: accept it\norders: the last 1 message of orders\n",
        ),
    ],
)
def test_which_messages_they_are(tmp_path: Path, result: Preview, text: str) -> None:
    make_plan(tmp_path)
    assert printed_text(tmp_path, result).startswith(text)


def test_refusals_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_plan(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))  # in which no Kafka runs
    before = digests(tmp_path)
    cases = [
        (["orderz"], 1, "unknown-pipeline: there is no pipeline `orderz`\n  hint: did you mean `orders`?"),
        (["orders"], 1, "kafka-unreachable: Kafka at 127.0.0.1:1 does not answer\n  hint: is it running?"),
        (["large"], 1, "source-missing: the table shop.orders, which large reads, does not exist yet\n  hint: run `orders`"),
        (["large", "--from", "latest"], 2, "--from has no effect here: large reads a table, not a topic"),
        (["orders", "--messages", "0"], 2, "0 is not in the range"),
    ]
    for words, status, text in cases:
        result = CliRunner().invoke(main, ["preview", *words])
        assert (result.exit_code, text in result.output) == (status, True), result.output
    assert digests(tmp_path) == before


def digests(*folders: Path) -> dict[str, str]:
    """Returns a digest of each file and folder, except those that Kafka and Spark write."""

    def below(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if path.name not in ("services", "jars", "spark"):
                yield path
                yield from below(path) if path.is_dir() else ()

    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for folder in folders
        for path in below(folder)
    }


# Real messages


def fates(result: Preview) -> list[Any]:
    """Returns the fate of each message's rows, with their number of steps, their last name or id, and the code."""
    return [[_fate(row) for row in message.rows] for message in result.messages]


def _fate(row: Row) -> tuple[Any, ...]:
    last_row = row.after[-1] if row.after else {}
    return row.fate, len(row.after), last_row.get("name", last_row.get("id")), row.code or row.unexpected


ORDERS: tuple[dict[str, Any], ...] = (
    {"id": 1, "items": [{"name": "pen", "price": 1.5}, {"name": "desk", "price": 5001}, {"name": "gift", "price": 0}],
     "at": "2026-01-05T10:00:00.25+01:00", "cents": "CENTS"},
    {"id": 2, "items": [{"name": "car", "price": 4000}]},
    {"id": 3, "items": []},
    {"id": 7, "items": [{"name": "pen", "price": 1}]},
    {"id": 8, "items": [{"name": "pen", "price": 1}]},
    {"id": None},
    {"id": "x"},
)  # fmt: skip


def sent(order: dict[str, Any]) -> bytes:
    return json.dumps(order).replace('"CENTS"', "12345678901234567.10").encode()  # more digits than a float has


@pytest.fixture
def shop(project: Project, tmp_path: Path) -> tuple[Project, Plan, Context]:
    project.make_topic(partitions=1)
    plan = make_plan(tmp_path / "shop", project.bootstrap, project.topic, project.namespace)
    return project, plan, Context(plan, spark=lambda: project.spark)


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.spark
def test_it_says_what_a_run_then_does(shop: tuple[Project, Plan, Context]) -> None:
    project, plan, context = shop
    orders, large = (pipeline for name in ("orders", "large") if (pipeline := plan.pipeline(name)))
    assert preview(context, orders, 5) == Preview((), "latest", 0)
    project.send([*map(sent, ORDERS), b"no json", None], partition=0)

    result = preview(context, orders, 20)

    assert (result.which, result.waiting, result.refused) == ("next", 9, None)
    assert fates(result) == [
        [("lands", 9, "PEN", ()), ("bad", 8, "DESK", "expectation_failed"), ("filtered", 5, 1, ())],
        [("lands", 9, "CAR", ("cheap",))],
        [("filtered", 2, 3, ())],
        [("bad", 1, 7, "step_failed")],
        [("filtered", 7, 8, ())],
        *([("bad", 0, None, code)] for code in ("missing_field", "undecodable", "undecodable", "null_value")),
    ]
    pen = result.messages[0].rows[0].after[-1]
    assert pen == {
        "id": 1, "name": "PEN", "item_price": 1.5, "at": "2026-01-05T09:00:00.250Z", "cents": "12345678901234567.10", "size": "NORMAL",
    }  # fmt: skip
    assert [message.offset for message in preview(context, orders, 2).messages] == [0, 1]
    assert table_state.table(orders.table.catalog, orders.table.identifier) is None

    (batch,) = batches(context, orders)

    assert (batch.read, batch.rows, batch.bad) == (9, 2, 6)
    bad = table_state.table(orders.table.catalog, orders.table.bad_rows)
    assert bad is not None
    landed = {(row["offset"], row["item"]): (row["code"], row["message"]) for row in bad.scan().to_arrow().to_pylist()}
    assert landed == {
        (message.offset, row.item): (row.code, row.message) for message in result.messages for row in message.rows if row.code
    }

    result = preview(context, orders, 2)
    assert (result.which, result.waiting, [message.offset for message in result.messages]) == ("latest", 0, [7, 8])
    project.send([good(2)], partition=0)
    result = preview(context, orders, 2)
    assert (result.which, result.waiting, [message.offset for message in result.messages]) == ("next", 1, [9])
    assert [message.offset for message in preview(context, orders, 2, "earliest").messages] == [0, 1]
    assert [message.offset for message in preview(context, orders, 2, "latest").messages] == [8, 9]

    result = preview(context, large, 20)
    assert sorted(fates(result)) == [[("filtered", 1, "PEN", ())], [("lands", 2, "CAR", ())]]


@pytest.mark.kafka
@pytest.mark.spark
def test_of_many_large_messages_as_many_as_fit_into_memory(project: Project) -> None:
    project.make_topic(partitions=1)
    project.send([b" " * 900_000 + good(number) for number in range(30)], partition=0)
    context = project.context()
    result = preview(context, context.plan.pipelines[0], 30)
    assert [message.offset for message in result.messages] == list(range(19))
    assert result.waiting == 30
    latest_result = preview(context, context.plan.pipelines[0], 30, "latest")
    assert [message.offset for message in latest_result.messages] == list(range(11, 30))


@pytest.mark.kafka
@pytest.mark.spark
def test_where_transactions_left_nothing(project: Project) -> None:
    project.make_topic(partitions=1)
    settings = {"bootstrap.servers": project.bootstrap, "transactional.id": project.topic}
    producer = Producer(settings)
    producer.init_transactions()

    def send(count: int, commit: bool) -> None:
        producer.begin_transaction()
        for number in range(count):
            producer.produce(project.topic, good(number), partition=0)
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()

    send(50, commit=False)
    send(3, commit=True)
    send(60, commit=False)
    context = project.context()
    pipeline = context.plan.pipelines[0]
    # Kafka answers before it has written the end of a transaction.
    until(
        lambda: context.source(pipeline).topic_state().ends[f"{project.topic}/0"] >= 116, "the end of a transaction does not come"
    )
    for which, waiting in (("next", 116), ("earliest", None), ("latest", None)):
        result = preview(context, pipeline, 2, which)  # type: ignore[arg-type]
        offsets = [52, 53] if which == "latest" else [51, 52]
        assert (result.which, result.waiting, [message.offset for message in result.messages]) == (which, waiting, offsets)


@pytest.mark.kafka
@pytest.mark.spark
def test_schemas_of_a_registry(tmp_path: Path, lake: Path, kafka: str, spark: Any, registry: str) -> None:
    """The preview treats a later version, a schema of another subject and an unknown schema as a run does."""
    project = Registered(tmp_path, lake, kafka, spark, registry)
    project.make_topic(partitions=1)
    first_id = project.register(record(("id", "long")))
    context = project.context()
    second_id = project.register(record(("id", "long"), ("note", ["null", "string"], {"default": None})))
    other_id = project.register(record(("id", "int"), name="Other"), f"{project.topic}-other")
    good = [
        *project.avro(first_id, {"id": 1}),
        *project.avro(second_id, {"id": 2, "note": "n"}),
        *project.avro(other_id, {"id": 3}),
    ]
    project.send([*good, framed(77777, b"x"), good[0] + b"\0"], partition=0)
    result = preview(context, context.plan.pipelines[0], 9)
    rows = [row for message in result.messages for row in message.rows]
    assert [row.after[0] for row in rows[:3]] == [{"id": 1, "note": None}, {"id": 2, "note": "n"}, {"id": 3, "note": None}]
    assert [row.code for row in rows] == ["", "", "", "unknown_schema", "undecodable"]
    assert table_state.table(project.pipeline.table.catalog, project.table.removeprefix("lake.")) is None
    project.close()


@pytest.mark.kafka
@pytest.mark.spark
def test_what_a_run_refuses_is_said(project: Project) -> None:
    project.make_topic()
    project.send_good(3)
    project.run()
    project.delete_topic()
    project.make_topic()
    project.send_good(6)
    context = project.context()
    result = preview(context, context.plan.pipelines[0], 4)
    assert (result.which, result.waiting, len(result.messages)) == ("latest", None, 4)
    assert result.refused and result.refused.code == "topic-recreated"


MERGED = """
topic: a
kafka_name: {a}
value: string
key: {{format: bytes, as: k}}
---
topic: b
kafka_name: {b}
value: string
key: {{format: bytes, as: k}}
---
pipeline: merged
from: {{topics: [a, b]}}
steps: [{{derive: {{came_from: _kafka_topic}}}}]
into: {{table: {namespace}.merged, partition_by: [came_from]}}
"""


@pytest.mark.kafka
@pytest.mark.spark
def test_messages_of_several_topics_are_shown(project: Project) -> None:
    other_project = Project(project.folder, project.lake, project.bootstrap, project.spark)
    for topic_project in (project, other_project):
        topic_project.make_topic()
        topic_project.send([b"one", b"\xff"])
    specs = MERGED.format(a=project.topic, b=other_project.topic, namespace=project.namespace)
    context = Context(plan_for(project.lake, project.bootstrap, specs), spark=lambda: project.spark)
    result = preview(context, context.plan.pipelines[0], 10)
    assert {(message.topic, message.value) for message in result.messages} == {
        (name, value) for name in (project.topic, other_project.topic) for value in (b"one", b"\xff")
    }
    for message in result.messages:
        (row,) = message.rows
        if message.value == b"one":
            assert row.after[-1] == {"value": "one", "k": "azA=", "came_from": message.topic}
        else:
            assert (row.fate, row.code) == ("bad", "undecodable")


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_the_command_writes_nothing(shop: tuple[Project, Plan, Context], tmp_path: Path, sluice_home: Path) -> None:
    project, plan, context = shop
    orders = plan.pipeline("orders")
    assert orders is not None
    project.send(map(sent, ORDERS), partition=0)
    assert list(batches(context, orders))
    project.send([sent({**ORDERS[0], "id": 9}), b"\xff"], partition=0)
    groups = committed(project)
    before = digests(project.lake, tmp_path, sluice_home)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def output_of(*words: str) -> str:
        command = [sys.executable, "-c", "from framework.host.cli import main; main()", "preview", *words]
        result = subprocess.run(
            [*command, "--specs", str(tmp_path / "shop" / "specs")],
            check=False, cwd=project.lake, env=environment, capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
        assert "WARN " not in result.stderr
        return result.stdout

    document = json.loads(output_of("orders", "--json"))
    assert (document["pipeline"], document["which"], document["waiting"], document["refused"]) == ("orders", "next", 2, None)
    assert document["steps"][0] == {"step": "derive", "says": ["ratio = 100 / (id - 7)"]}
    (good_, bad) = document["messages"]
    assert json.loads(good_["value"])["id"] == 9
    assert [(row["item"], row["fate"]) for row in good_["rows"]] == [("1", "lands"), ("2", "bad"), ("3", "filtered")]
    assert good_["rows"][1]["bad"]["message"] == "item_price is between 0 and 5000"
    assert good_["rows"][2]["filtered_by"] == {"number": 5, "step": "filter"}
    assert (bad["value_base64"], bad["rows"][0]["bad"]["code"]) == ("/w==", "undecodable")
    page = output_of("large", "--messages", "9")
    assert page.startswith(f"large: 2 rows of {project.namespace}.orders\n  1 filter  size = 'LARGE'\n")
    assert f"\n  lands in {project.namespace}.large\n" in page
    assert "\n  filtered out by 1 filter\n" in page
    assert digests(project.lake, tmp_path, sluice_home) == before
    assert committed(project) == groups


def committed(project: Project) -> set[str]:
    """The consumer groups of Kafka."""
    return {group.group_id for group in project.admin.list_consumer_groups().result().valid}
