"""A ledger over random kills: messages with hostile keys, runs that get a SIGKILL at a random point or moment, and at the end the
rows that the model makes of all messages.

Other kills: KILLS=20 SEED=7 pytest tests/core/test_ledger.py -s
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from datetime import datetime, timezone
from typing import Any

import pytest
from confluent_kafka import Message as Delivered, Producer

from framework.core.rules.protocol import KILL_POINTS
from framework.plan import Message
from tests.support.keyed_rows import HOSTILE, MODELS, SPEC, happened, rows
from tests.support.project import Project
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]
KILLS = int(os.environ.get("KILLS", "7"))
SEED = int(os.environ.get("SEED", "13"))
LATEST = 2.0  # seconds after a run has opened its table


class Ledger:
    """All messages that were sent, with the places at which Kafka put them."""

    def __init__(self, project: Project, chance: random.Random) -> None:
        self.project, self.chance = project, chance
        self.messages: list[Message] = []
        self.moment = 0
        self.producer = Producer({"bootstrap.servers": project.bootstrap})

    def send(self, count: int) -> None:
        for _ in range(count):
            self.moment += self.chance.randint(0, 2)
            time = max(1, self.moment - self.chance.choice([0, 0, 0, 5]))  # some come late
            key = json.dumps({"id": self.chance.randint(1, 2), "region": self.chance.choice(HOSTILE)}).encode()
            value: bytes | None = json.dumps({"name": f"{time} {self.chance.choice(HOSTILE)}", "at": time * 1000}).encode()
            value = self.chance.choice([value, value, value, value, None, b"{"])
            self._produce(key, value, time)
        self._produce(b'{"id": 1, "region": "eu"}', b"{", self.moment + 1)  # each batch has a bad row
        assert self.producer.flush(30) == 0

    def _produce(self, key: bytes, value: bytes | None, time: int) -> None:
        def delivered(error: Any, message: Delivered) -> None:
            assert error is None
            timestamp = datetime.fromtimestamp(time, timezone.utc)
            partition, offset = message.partition(), message.offset()
            assert partition is not None and offset is not None
            sent = Message(
                batch=1, topic=self.project.topic, partition=partition, offset=offset, timestamp=timestamp, key=key, value=value
            )
            self.messages.append(sent)

        self.producer.produce(
            self.project.topic, value, key=key, partition=self.chance.randrange(3), timestamp=time * 1000, on_delivery=delivered
        )


def kill(project: Project, chance: random.Random, points: tuple[str, ...]) -> str:
    """Kills a run, and returns where or when; the test waits for nothing but the end of its process."""
    if chance.random() < 0.7:
        point = chance.choice(points)
        with victim(project, point, signal.SIGKILL) as process:
            process.wait(PATIENCE)
        return point
    delay = chance.uniform(0, LATEST)
    with victim(project, "opened", signal.SIGCONT) as process:
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"{delay:.2f} s"
        return f"not before its end ({delay:.2f} s)"


@pytest.mark.parametrize(
    ("write", "deletes", "time"),
    [
        ("upsert", "tombstones", "at"),
        ("upsert", "tombstones", "kafka"),
        ("history", "tombstones", "at"),
        ("history", "tombstones", "kafka"),
        ("append", "ignore", "at"),
    ],
)
def test_nothing_is_lost_or_doubled_by_kills(project: Project, write: str, deletes: str, time: str) -> None:
    """The order of a key's messages is that of the event time `at`, or of Kafka's time, which steps back in a partition."""
    print(f"\nSEED={SEED}, {write} by {time}, {KILLS} kills")
    chance = random.Random(f"{SEED} {write} {KILLS}")
    keys = "keys: [region, id]" if write != "append" else "catalog: lake"
    event_time = "event_time: at" if time == "at" else ""
    spec_values = {
        "write": write,
        "keys": keys,
        "deletes": deletes,
        "version": "3",
        "partition_by": "[]",
        "event_time": event_time,
    }
    spec = SPEC.replace("value: json", "kafka_name: {topic}\nvalue: json", 1).replace("{namespace}.orders", "{namespace}.trades")
    for name, text in spec_values.items():
        spec = spec.replace(f"{{{name}}}", text)
    project.template = spec
    project.make_topic(3)
    ledger = Ledger(project, chance)
    points = KILL_POINTS if write == "append" else (*KILL_POINTS, "merged")
    for _ in range(KILLS):
        ledger.send(chance.randint(5, 40))
        print(f"killed at {kill(project, chance, points)}")
    ledger.send(5)
    project.run()

    print(f"{len(ledger.messages)} messages")
    ordered = sorted(ledger.messages, key=lambda message: (message.partition, message.offset))
    assert rows(project.pipeline, project.spark) == Counter(MODELS[write](happened(ordered, deletes, by_event_time=time == "at")))
    bad = Counter((row["partition"], row["offset"]) for row in project.rows(bad=True))
    assert bad == Counter((message.partition, message.offset) for message in ordered if message.value == b"{")
    assert project.branches() == []
