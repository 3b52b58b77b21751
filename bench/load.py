"""The messages and the specs that are measured."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 6

BASE = """
cluster: main
bootstrap: "{bootstrap}"
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
"""

TRADES = """
---
topic: {name}
kafka_name: {topic}
value: json
columns: {{side: string, quantity: int, symbol: string, price: double, account: string, userid: string, at: timestamp}}
---
pipeline: {name}
from: {{topic: {name}}}
steps:
  - flag:
      into: anomaly_flag
      rules:
        - {{when: price < 0, label: NEGATIVE_PRICE}}
        - {{when: quantity > 4000, label: LARGE_TRADE}}
        - {{when: price > 900, label: UNUSUAL_PRICE}}
      otherwise: NORMAL
into: {{table: bench.{name}}}
"""


def specs(bootstrap: str, topics: Mapping[str, str]) -> Path:
    """A folder of specs with a pipeline for each of these names, from these topics."""
    folder = Path("specs", uuid.uuid4().hex)
    folder.mkdir(parents=True)
    text = BASE.format(bootstrap=bootstrap) + "".join(TRADES.format(name=name, topic=topic) for name, topic in topics.items())
    (folder / "bench.yaml").write_text(text)
    return folder


def send(bootstrap: str, topic: str, count: int, bad_every: int = 0, envelope: bool = False) -> None:
    """Sends trades of about 150 bytes, the same for the same count; one in `bad_every` is cut off in the middle. With `envelope` they are
    changes of Debezium."""
    chance = random.Random(1)

    def values() -> Iterator[bytes]:
        for number in range(count):
            value = _trade(chance, number)
            if envelope:
                value = b'{"before":null,"after":%s,"source":%s,"op":"c","ts_ms":1767607200000}' % (value, SOURCE)
            yield value[:-20] if bad_every and number % bad_every == 0 else value

    produce(bootstrap, topic, values())


def produce(bootstrap: str, topic: str, values: Iterable[bytes], partitions: int = PARTITIONS) -> None:
    """Sends values to the partitions in turn. The topic is created if it is missing."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4", "queue.buffering.max.messages": 2_000_000}
    )
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


SOURCE = json.dumps(
    {
        "version": "3.0.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1767607200000, "snapshot": "false", "db": "shop",
        "schema": "public", "table": "trades", "txId": 555, "lsn": 24023128, "xmin": None,
    }
).encode()  # fmt: skip


def _trade(chance: random.Random, number: int) -> bytes:
    return json.dumps(
        {
            "side": chance.choice(["BUY", "SELL"]),
            "quantity": chance.randint(1, 5000),
            "symbol": chance.choice(["ZVZZT", "ZBZX", "ZJZZT"]),
            "price": float(chance.randint(-10, 1000)),
            "account": chance.choice(["ABC123", "XYZ789"]),
            "userid": f"User_{chance.randint(1, 9)}",
            "at": f"2026-01-05T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z",
        }
    ).encode()


def offsets(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> tuple[dict[int, int], dict[int, int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    marks = {partition: consumer.get_watermark_offsets(TopicPartition(topic, partition)) for partition in range(partitions)}
    consumer.close()
    return {partition: mark[0] for partition, mark in marks.items()}, {partition: mark[1] for partition, mark in marks.items()}
