"""The messages of a topic."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Consumer, TopicPartition

Row = dict[str, Any]


def messages_of(kafka: str, topic: str) -> list[tuple[bytes | None, Row]]:
    """The key and the JSON value of every message."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "story", "enable.auto.commit": False})
    messages = []
    for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.assign([TopicPartition(topic, partition, start)])
        messages += consumer.consume(end - start, timeout=10) if end > start else []
    consumer.close()
    return [(message.key(), json.loads(message.value() or b"null")) for message in messages]
