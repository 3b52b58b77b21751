"""`write: upsert` on real Kafka, Spark and Iceberg: one row per key, whatever the order, the batches, the kills and the readers."""

from __future__ import annotations

import json

import pytest

from tests.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SPEC = """
topic: trades
kafka_name: {topic}
key: {{format: long, as: id}}
value: json
event_time: at
columns:
  name: string
  at: {{type: timestamp, format: epoch_millis}}
{topic_more}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - filter: "name is null or name <> 'left out'"
into: {{table: {namespace}.trades, write: upsert, keys: [id], deletes: tombstones}}
{more}
"""


@pytest.fixture
def customers(project: Project) -> Project:
    project.template = SPEC
    project.make_topic(3)
    return project


def send(project: Project, *messages: tuple[int | None, str | None, int], partition: int = 0) -> None:
    """Key, name and event time; without a name it is a tombstone, whose time is Kafka's."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": project.bootstrap})
    for key, name, at in messages:
        value = None if name is None else json.dumps({"name": name, "at": at}).encode()
        data = None if key is None else key.to_bytes(8, "big", signed=True)
        producer.produce(project.topic, value, key=data, partition=partition, timestamp=at)
    assert producer.flush(30) == 0


def names(project: Project) -> dict[int, str]:
    rows = project.rows()
    assert len({row["id"] for row in rows}) == len(rows), "a key has two rows"
    return {row["id"]: row["name"] for row in rows}


def test_the_newest_row_of_each_key(customers: Project) -> None:
    send(customers, (1, "a", 1000), (2, "b", 1000), (1, "a2", 3000), (1, "a1", 2000))
    (batch,) = customers.run()
    assert names(customers) == {1: "a2", 2: "b"}
    assert batch.changed and (batch.changed.inserted, batch.changed.updated, batch.changed.deleted) == (2, 0, 0)
    send(customers, (1, "late", 2500), (2, "b2", 1001), (3, "left out", 1000), partition=1)
    (batch,) = customers.run()
    assert names(customers) == {1: "a2", 2: "b2"}
    assert (batch.read, batch.rows, batch.filtered) == (3, 2, 1)
    assert batch.changed and (batch.changed.inserted, batch.changed.updated, batch.changed.deleted) == (0, 1, 0)


def test_deletes_are_remembered(customers: Project) -> None:
    send(customers, (1, "a", 1000), (2, "b", 1000))
    customers.run()
    send(customers, (1, None, 5000), (9, None, 5000))
    (batch,) = customers.run()
    assert batch.changed and batch.changed.deleted == 1
    assert names(customers) == {2: "b"}
    send(customers, (1, "older", 4000), (9, "older", 4999), (2, None, 900), partition=1)
    customers.run()
    assert names(customers) == {2: "b"}
    send(customers, (1, "born again", 6000), partition=2)
    customers.run()
    assert names(customers) == {1: "born again", 2: "b"}


def test_a_message_without_a_key_is_a_bad_row(customers: Project) -> None:
    send(customers, (None, "a", 1000), (None, None, 1000), (1, "a", 1000))
    customers.run()
    assert names(customers) == {1: "a"}
    assert [(row["stage"], row["code"]) for row in customers.rows(bad=True)] == [("keys", "null_key")] * 2
