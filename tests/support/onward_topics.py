"""A pipeline whose table goes on to a topic, and what a consumer reads there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.project import Project

ROWS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: {{type: bigint, required: true}}, price: double, gone: boolean}}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades%s}}
also:
  - {{topic: {topic}_on%s}}
"""


@pytest.fixture
def onward(project: Project) -> Iterator[Project]:
    yield project
    for future in project.admin.delete_topics([f"{project.topic}_on"]).values():
        future.exception()


def prepare(project: Project, also: str = "", into: str = "") -> Project:
    project.template = ROWS % (into, also)
    project.make_topic(3)
    return project


def upserts(project: Project, also: str = "") -> Project:
    return prepare(project, also, ", write: upsert, keys: [id], deletes: {{when: gone}}")


def send(project: Project, *rows: dict[str, Any], partition: int = 0) -> None:
    project.send([json.dumps(row).encode() for row in rows], partition)


def messages(project: Project, decode: Callable[[bytes], Any] = json.loads) -> list[tuple[Any, ...]]:
    """The topic's messages by partition: key, value, and the headers by which a repeat is known."""
    consumer = Consumer(
        {"bootstrap.servers": project.bootstrap, "group.id": "test", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    records = []
    topic = f"{project.topic}_on"
    for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while (message := consumer.poll(10)) is not None and message.error() is None:  # until the end, which is an error
            value = message.value()
            headers = {name: str(data, "utf-8") for name, data in dict(message.headers() or ()).items()}  # type: ignore[arg-type]
            key = message.key()
            records.append((str(key, "utf-8") if key else None, decode(value) if value is not None else None, headers))
    consumer.close()
    return records


def keyed(records: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Prices by key, as a consumer that keeps the last message of each key has them."""
    last_values = {key: value for key, value, _ in records}
    return {key: value["price"] for key, value in last_values.items() if value is not None}
