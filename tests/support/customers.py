"""Customers by number, whose messages upsert or delete them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.project import Project

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


def send(project: Project, *messages: tuple[int | None, str | None, int | None], partition: int = 0, **fields: Any) -> None:
    """Sends messages of key, name and event time. Without a name it is a tombstone with Kafka's time."""
    project.produce(
        {
            "value": None if name is None else json.dumps({"name": name, "at": millis, **fields}).encode(),
            "key": None if key is None else key.to_bytes(8, "big", signed=True),
            "partition": partition,
            "timestamp": millis or 0,
        }
        for key, name, millis in messages
    )
