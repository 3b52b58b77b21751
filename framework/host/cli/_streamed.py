"""Ten seconds of `sluice stream` in the demo: messages are sent, and each is waited for in its table."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from framework.base.errors import SluiceError
from framework.core.iceberg import metadata
from framework.core.rules import protocol
from framework.core.rules.protocol import Partition
from framework.machine.processes import end_group
from framework.operations.send import generate
from framework.plan import Pipeline, Plan, Topic

_SECONDS, _WARM, _RATE = 10, 5, 20  # seconds of messages that count, and before, while Java is slow; and how many each second
_PATIENCE = 60.0  # seconds for Spark to start, and for the last message
_POLL = 0.02


def streamed(plan: Plan, address: str) -> Pipeline | None:
    """The pipeline that the demo streams: one that runs on new data, from a topic with messages that the demo can make."""
    return next(
        (pipeline for pipeline in plan.pipelines if pipeline.run.on_new_data and _is_sent(pipeline.topics, address)), None
    )


def _is_sent(topics: tuple[Topic, ...], address: str) -> bool:
    return len(topics) == 1 and all(
        topic.generator and not topic.registered and topic.cluster.bootstrap == address for topic in topics
    )


def delays(plan: Plan, pipeline: Pipeline, log: Path) -> list[float]:
    """The seconds from when Kafka had a message until it was in the table, of each message of ten seconds."""
    with _stream(pipeline, log) as has_ended:
        _landed(plan, pipeline, _WARM, log, has_ended)
        return _landed(plan, pipeline, _SECONDS, log, has_ended)


def words(pipeline: Pipeline, seconds: list[float]) -> str:
    """A line that says what was measured."""
    return (
        f"Of {len(seconds):,} messages, each was in {pipeline.table.identifier} {statistics.median(seconds):.1f} s after Kafka had it"
        f" (median; the slowest after {max(seconds):.1f} s)"
    )


def _landed(plan: Plan, pipeline: Pipeline, seconds: int, log: Path, has_ended: Callable[[], bool]) -> list[float]:
    """Sends messages for so many seconds, and returns how long each took."""
    waiting: dict[tuple[Partition, int], float] = {}
    all_seconds: list[float] = []
    sender = threading.Thread(target=_send, args=(plan, pipeline.topic, seconds * _RATE, waiting), daemon=True)
    sender.start()
    until = time.monotonic() + seconds + _PATIENCE
    while sender.is_alive() or waiting:
        ends, moment = _ends(pipeline), time.monotonic()
        for (partition, offset), arrived in list(waiting.items()):
            if offset < ends.get(partition, 0):
                del waiting[partition, offset]
                all_seconds.append(moment - arrived)
        if moment > until or has_ended():
            raise SluiceError("demo-failed", f"{len(waiting):,} messages did not land in time", f"read {log}")
        time.sleep(_POLL)
    if len(all_seconds) < seconds * _RATE:
        raise SluiceError("demo-failed", f"only {len(all_seconds):,} messages were sent", "see that Kafka runs")
    return all_seconds


def _send(plan: Plan, topic: Topic, count: int, waiting: dict[tuple[Partition, int], float]) -> None:
    """Sends messages, and notes when Kafka has each."""

    def arrived(number: int, offset: int) -> None:
        waiting[protocol.partition(topic.kafka_name, number), offset] = time.monotonic()

    assert topic.generator is not None
    topic = replace(topic, generator=replace(topic.generator, rate=_RATE))  # so that no event is in the future
    messages = itertools.islice(generate.messages(topic, None, datetime.now(timezone.utc)), count)
    generate.send(topic, plan.secrets, messages, _RATE, arrived=arrived)


def _ends(pipeline: Pipeline) -> dict[Partition, int]:
    """The offsets up to which the table has rows."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    position = table.position if table else None
    return dict(position.ends) if position else {}


@contextmanager
def _stream(pipeline: Pipeline, log: Path) -> Iterator[Callable[[], bool]]:
    """A stream of the pipeline, in a process of its own, and whether that has ended."""
    command = [sys.executable, "-c", "from framework.host.cli import main; main()", "stream", pipeline.name]
    command += ["--port", "0", "--env", pipeline.environment]
    with open(log, "wb") as file:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield lambda: child.poll() is not None
    finally:
        end_group(child)
