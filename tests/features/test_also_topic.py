"""`also: topic` on real parts: the messages that a consumer of the topic gets, whenever a run dies."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from framework.core.follow import follow, waiting
from framework.operations.drop import drop
from framework.operations.observe.status import status_of
from tests.support.commands import Commands
from tests.support.follower_parts import ran
from tests.support.kill_points import Died, dies_at
from tests.support.onward_topics import ROWS, keyed, messages, onward, prepare, send, upserts
from tests.support.project import Project
from tests.support.registry_project import Registered
from tests.support.rollbacks import rolled_back, snapshots
from tests.support.runs import errors
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
__all__ = ["onward"]  # a fixture


def test_each_row_is_sent_once_it_is_committed(onward: Project) -> None:
    project = prepare(onward, ", where: price > 1, key: id")
    send(project, {"id": 1, "price": 1.5}, {"id": 2, "price": 0.5}, {"id": 3, "price": 2})
    assert ran(project) == [2]
    send(project, {"id": 4, "price": 7})
    assert ran(project) == [1]
    assert ran(project) == []
    records = messages(project)
    assert sorted(key for key, _, _ in records) == ["1", "3", "4"]
    first_value = next(value for key, value, _ in records if key == "1")
    assert list(first_value) == ["id", "price", "gone", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
    assert (first_value["id"], first_value["price"], first_value["gone"]) == (1, 1.5, None)
    assert len({tuple(headers.items()) for _, _, headers in records}) == 3
    assert {tuple(headers) for _, _, headers in records} == {("sluice-table", "sluice-commit", "sluice-row", "sluice-sender")}


def peeked(project: Project, topic: str) -> list[dict[str, Any]]:
    specs = str(Path(project.pipeline.where.file).parent)
    return [json.loads(line) for line in Commands().ok("peek", topic, "--json", "--specs", specs).splitlines()]


def test_peek_and_topics_know_the_topic_that_is_filled(onward: Project) -> None:
    project = upserts(onward)
    topic, specs = f"{project.topic}_on", ("--specs", str(Path(project.pipeline.where.file).parent))
    commands = Commands()
    entries = json.loads(commands.ok("topics", "--json", *specs))["topics"]
    assert [(entry["topic"], entry["there"], entry["filled_by"]) for entry in entries] == [
        ("trades", True, []), (topic, False, ["trades"])
    ]  # fmt: skip
    send(project, {"id": 1, "price": 1.5}, {"id": 2, "price": 2.5})
    ran(project)
    send(project, {"id": 1, "gone": True})
    ran(project)
    header, _, filled_line = commands.ok("topics", *specs).splitlines()[:3]
    assert header.split()[-4:] == ["read", "by", "filled", "by"]
    assert filled_line.split()[:3] == [topic, topic, "yes"]
    assert filled_line.split()[-3:] == ["5", "nobody", "trades"], "three messages, and the ends of two transactions"
    output = commands.ok("peek", topic, *specs)
    assert f"{topic}: the last 3 messages of {topic}\nthey are the rows that `also` of trades sends\n" in output
    messages_by_key = {
        (message["key"], json.dumps(message["value"] and message["value"]["price"])) for message in peeked(project, topic)
    }
    assert messages_by_key == {("1", "1.5"), ("2", "2.5"), ("1", "null")}
    assert "bad row" not in output
    assert f"the topic `{topic}` is filled by `also` of `trades`" in commands.refused("send", topic, "{}", *specs)
    assert f"did you mean `{topic}`?" in commands.refused("peek", f"{topic}n", *specs)
    assert f"topic-is-used: the topic {topic} has up to 5 messages" in commands.refused("topics", "delete", topic, *specs)
    assert f"{topic}: deleted {topic} in Kafka" in commands.ok("topics", "delete", topic, "--force", "--yes", *specs)
    assert f"{topic}: created {topic} in Kafka, " in commands.ok("topics", "create", topic, *specs)


def test_updates_and_deletes_of_rows_by_keys(onward: Project) -> None:
    project = upserts(onward)
    send(project, *({"id": number, "price": number} for number in range(6)))
    ran(project)
    send(project, {"id": 1, "price": 10}, {"id": 2, "gone": True}, {"id": 7, "price": 7})
    assert ran(project) == [3]
    assert keyed(messages(project)) == {"0": 0, "1": 10, "3": 3, "4": 4, "5": 5, "7": 7}
    assert [key for key, value, _ in messages(project) if value is None] == ["2"]


def test_keys_of_a_dropped_table_that_the_new_one_lacks_are_sent_as_deleted(onward: Project) -> None:
    project = upserts(onward)
    send(project, *({"id": number, "price": number} for number in range(6)))
    ran(project)
    other_producer = Producer({"bootstrap.servers": project.bootstrap})
    other_producer.produce(f"{project.topic}_on", key="9", value=b'{"price": 9}')
    other_producer.flush(30)
    for table in drop.of_pipeline(project.pipeline):
        drop.drop(table, data=True)
    project.delete_topic()
    project.make_topic(3)
    send(project, {"id": 1, "price": 10}, {"id": 2, "gone": True})
    ran(project)
    assert keyed(messages(project)) == {"1": 10, "9": 9}  # what somebody else sent stays
    assert sorted(key for key, value, _ in messages(project) if key and value is None) == ["0", "2", "3", "4", "5"]


def test_keys_that_another_where_does_not_choose_are_sent_as_deleted(onward: Project) -> None:
    project = upserts(onward, ", where: price > 1")
    send(project, *({"id": number, "price": number} for number in range(4)))
    ran(project)
    project.template = ROWS % (", write: upsert, keys: [id], deletes: {{when: gone}}", ", where: price > 2")
    ran(project)
    assert keyed(messages(project)) == {"3": 3}


@pytest.mark.long
def test_a_row_that_is_no_longer_chosen_is_sent_as_deleted(onward: Project) -> None:
    project = upserts(onward, ", where: price > 5")
    send(project, {"id": 1, "price": 6}, {"id": 2, "price": 7}, {"id": 3, "price": 1})
    assert ran(project) == [2]
    send(project, {"id": 1, "price": 2}, {"id": 3, "price": 9})
    assert ran(project) == [2]
    assert keyed(messages(project)) == {"2": 7, "3": 9}


@pytest.mark.parametrize("point", few(follow.KILL_POINTS, "shown"))
def test_a_follower_dies_at(onward: Project, point: str) -> None:
    """A repeat has the same headers, so that it can be left out."""
    project = prepare(onward, ", key: id")
    send(project, *({"id": number, "price": number} for number in range(20)))

    with suppress(Died):
        ran(project, dies_at(point))
    send(project, {"id": 20, "price": 20})
    ran(project)
    records = messages(project)
    assert len(records) == (41 if point == "shown" else 21)
    assert len({tuple(headers.items()) for _, _, headers in records}) == 21


@pytest.mark.long
def test_a_step_that_died_is_repeated_as_it_was(onward: Project) -> None:
    """A key that was sent by it, and is deleted before the next run, is sent as deleted."""
    project = upserts(onward)
    send(project, {"id": 1, "price": 1}, {"id": 2, "price": 2})
    with suppress(Died):
        ran(project, dies_at("shown"))
    send(project, {"id": 2, "gone": True}, {"id": 3, "price": 3})
    assert ran(project) == [4]
    records = messages(project)
    assert keyed(records) == {"1": 1, "3": 3}
    repeats = [tuple(headers.items()) for key, value, headers in records if key in "12" and value]
    assert len(repeats) == 4
    assert len(set(repeats)) == 2


@pytest.mark.long
def test_catching_up_goes_by_commits(onward: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of a key are in order, also of commits that came while nothing followed. Compactions are nothing new."""
    project = prepare(onward, ", key: gone")
    for start in range(0, 40, 10):
        send(project, *({"id": number, "price": 1} for number in range(start, start + 10)))
        project.run()
    monkeypatch.setattr(waiting.by_rows, "__defaults__", (15,))  # a step has a million rows
    steps: list[str] = []
    assert ran(project, steps.append) == [40]
    assert steps.count("shown") == 2
    assert [value["id"] for _, value, _ in messages(project)] == list(range(40))
    project.spark.sql(
        f"call lake.system.rewrite_data_files(table => '{project.namespace}.trades', options => map('min-input-files', '2'))"
    )
    assert ran(project) == []
    assert len(messages(project)) == 40


@pytest.mark.long
def test_a_rollback_sends_the_rows_as_they_were(onward: Project) -> None:
    project = upserts(onward)
    send(project, {"id": 1, "price": 1})
    ran(project)
    before = snapshots(project)[-1]
    send(project, {"id": 1, "price": 2}, {"id": 2, "price": 2})
    ran(project)
    rolled_back(project, before)
    context = project.context()
    list(follow.after_run(context, context.plan.pipelines[0]))
    assert keyed(messages(project)) == {"1": 1}
    ran(project)
    assert keyed(messages(project)) == {"1": 2, "2": 2}


TOTALS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, price: double}}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - aggregate: {{by: [id], measures: {{price: sum(price)}}}}
into: {{table: {namespace}.trades, write: accumulate}}
also:
  - {{topic: {topic}_on, where: price > 0}}
"""


@pytest.mark.long
def test_totals_that_are_gone(onward: Project) -> None:
    """Totals go by a rollback, or when no row is chosen any more; the group of null is a group like any other."""
    onward.template = TOTALS
    onward.make_topic(3)
    send(onward, {"id": 1, "price": 1}, {"price": 5})
    ran(onward)
    before = snapshots(onward)[-1]
    send(onward, {"id": 1, "price": -3}, {"id": 2, "price": 2}, {"price": 1})
    assert ran(onward) == [3]
    assert [key for key, value, _ in messages(onward) if value is None] == ["1"]
    assert keyed(messages(onward)) == {None: 6, "2": 2}
    rolled_back(onward, before)
    context = onward.context()
    list(follow.after_run(context, context.plan.pipelines[0]))
    assert keyed(messages(onward)) == {None: 5, "1": 1}


def test_a_row_that_is_too_large_is_named_and_harms_no_batch(onward: Project) -> None:
    project = prepare(onward)
    project.admin.create_topics([NewTopic(f"{project.topic}_on", 1, 1, config={"max.message.bytes": "1000"})])[
        f"{project.topic}_on"
    ].result()
    project.template = project.template.replace("gone: boolean", "text: string")
    send(project, {"id": 1, "text": "".join(map(str, range(3000)))})
    context = project.context()
    (error,) = errors(context, context.plan.pipelines)
    assert error.code == "message-too-large"
    assert f"{project.namespace}.trades has all rows, the topic {project.topic}_on does not" in error.message
    assert len(project.rows()) == 1
    status = status_of(project.plan, project.pipeline)
    assert status.state == "caught up"
    (follower_state,) = status.followers
    assert (follower_state.state, follower_state.rows) == ("failing", 1)
    project.admin.delete_topics([f"{project.topic}_on"])[f"{project.topic}_on"].result()
    assert ran(project) == [1]
    (follower_state,) = status_of(project.plan, project.pipeline).followers
    assert (follower_state.state, follower_state.rows) == ("connected", 0)


def test_values_come_back_as_they_are(onward: Project) -> None:
    """A pipeline that reads the topic has the rows of the table, to the last digit."""
    types = {
        "d": "decimal(38,18)", "at": "timestamp", "day": "date", "b": "binary", "s": "string", "n": "bigint",
        "l": "array<struct<x:int,y:string>>", "m": "map<string,decimal(20,2)>", "f": "double", "nt": "timestamp_ntz",
    }  # fmt: skip
    columns = ", ".join(f"{name}: '{type_}'" for name, type_ in types.items())
    project = prepare(onward, ", key: s")
    project.template = project.template.replace("id: {{type: bigint, required: true}}, price: double, gone: boolean", columns)
    values = [
        {"d": 12345678901234567890.123456789012345678, "at": "2026-01-05T10:00:00.123456Z", "day": "1969-12-31", "b": "AP8=",
         "s": "${var:X} 'é\\\"\u2028\U0001f600", "n": 9223372036854775807, "l": [{"x": 1, "y": None}], "m": {"a.b": 0.1}, "f": 1e-320,
         "nt": "2026-01-05T10:00:00.000001"},
        {},
    ]  # fmt: skip
    text = json.dumps(values[0]).replace(str(12345678901234567890.123456789012345678), "12345678901234567890.123456789012345678")
    project.send([text.encode(), b"{}"], 0)
    assert ran(project) == [2]
    rows = project.rows()
    assert rows[0]["at"] == datetime(2026, 1, 5, 10, 0, 0, 123456, timezone.utc)
    project.template = project.template.replace("kafka_name: {topic}", "kafka_name: {topic}_on").partition("also:")[0]
    project.namespace += "b"
    project.run()
    topic_rows = project.rows()
    key = lambda row: str(row["s"])  # noqa: E731
    for table_row, topic_row in zip(sorted(rows, key=key), sorted(topic_rows, key=key), strict=True):
        assert {name: table_row[name] for name in types} == {name: topic_row[name] for name in types}


def test_avro_by_a_registry(trades: Registered) -> None:
    """The schema is registered, and a new one with a new column; deserializers of any registry's client read the messages."""
    trades.format, trades.topic_more = "json", "columns: {{id: bigint, price: 'decimal(10,2)', at: timestamp}}"
    trades.topic_more = trades.topic_more.replace("{{", "{").replace("}}", "}")
    trades.more = f"also: [{{topic: {trades.topic}_on, key: id, value: avro}}]"
    send(trades, {"id": 1, "price": 1.5, "at": "2026-01-05T10:00:00.000001Z"}, {"id": 2})
    assert ran(trades) == [2]
    trades.topic_more = trades.topic_more.replace("at: timestamp", "at: timestamp, new: 'array<string>'")
    send(trades, {"id": 3, "new": ["a", None]})
    assert ran(trades) == [1]
    records = [(key, *decoded(trades, value)) for key, value, _ in messages(trades, lambda data: data)]
    rows = {key: value for key, _, value in records}
    moment = datetime(2026, 1, 5, 10, 0, 0, 1, timezone.utc)
    assert (rows["1"]["price"], rows["1"]["at"], rows["2"]["price"]) == (Decimal("1.50"), moment, None)
    assert rows["3"]["new"] == ["a", None]
    assert len({schema for _, schema, _ in records}) == 2
    peeked_messages = {message["key"]: message for message in peeked(trades, f"{trades.topic}_on")}
    assert peeked_messages["3"]["value"]["new"] == ["a", None]
    assert [peeked_messages[key]["value"]["id"] for key in ("1", "2", "3")] == [1, 2, 3]
    assert {message["value_schema"]["version"] for message in peeked_messages.values()} == {1, 2}
    assert all(message["bad"] is None for message in peeked_messages.values())
    trades.admin.delete_topics([f"{trades.topic}_on"])[f"{trades.topic}_on"].result()


def decoded(project: Registered, value: bytes) -> tuple[int, Any]:
    id_ = int.from_bytes(value[1:5], "big")
    schema = requests.get(f"{project.registry}/schemas/ids/{id_}", timeout=10).json()["schema"]
    return id_, fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(json.loads(schema)), None)
