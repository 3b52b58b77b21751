"""The newest messages of a topic, read without Spark. Joins no group and commits nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from framework.base.errors import NoTopic, UnreachableError
from framework.base.patience import KAFKA
from framework.base.spelling import did_you_mean, the_names
from framework.core.kafka.cluster import Kafka, refuse_silent, unreachable
from framework.core.kafka.login import client_settings
from framework.plan import Cluster, SecretStore

_NO_LEADER = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PART")
_AT_ONCE = 500  # messages that are asked for at once
NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED  # the client asks for a group's coordinator, and none is needed


@dataclass(frozen=True, kw_only=True)
class KafkaMessage:
    partition: int
    offset: int
    timestamp: int | None  # milliseconds since 1970
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class MessageSample:
    """Messages in the order of partition and offset, and the size of the topic."""

    messages: tuple[KafkaMessage, ...]
    offsets: int  # how many the topic has: as many as messages, if it is neither compacted nor transactional
    partitions: int


def read_newest(cluster: Cluster, secrets: SecretStore, topic: str, limit: int) -> MessageSample:
    """At most `limit` messages: the newest of each partition, up to the last stable offsets."""
    refuse_silent(cluster)
    Kafka(cluster, secrets).cluster_id()  # raises a named error where no server answers
    settings = {**client_settings(cluster, secrets), "log_level": 0}
    settings |= {"group.id": "sluice-init", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(settings)
    try:
        topics = consumer.list_topics(timeout=KAFKA).topics
        if topic not in topics:
            raise _missing(cluster, topic, topics)
        bounds = {number: _bounds(consumer, TopicPartition(topic, number)) for number in sorted(topics[topic].partitions)}
        messages = read(consumer, topic, _ranges(bounds, limit))
    except KafkaException as error:
        raise unreachable(cluster, error.args[0]) from None
    finally:
        consumer.close()
    messages.sort(key=lambda message: (message.partition, message.offset))
    return MessageSample(tuple(messages), sum(end - start for start, end in bounds.values()), len(bounds))


def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """The first and the last stable offset of a partition. A new or moved partition has no leader for a moment."""
    deadline = time.monotonic() + KAFKA
    while True:
        try:
            start, end = consumer.get_watermark_offsets(partition, timeout=KAFKA)
        except KafkaException as error:
            if error.args[0].name() not in _NO_LEADER or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return start, end


def _ranges(bounds: Mapping[int, tuple[int, int]], limit: int) -> dict[int, tuple[int, int]]:
    """The last offsets of each partition with messages: the share that a small partition does not need goes to the larger ones."""
    rest = limit
    ranges = {}
    ordered = sorted(bounds.items(), key=lambda item: (item[1][1] - item[1][0], item[0]))
    for index, (number, (start, end)) in enumerate(ordered):
        share = min(end - start, -(-rest // (len(ordered) - index)))
        rest -= share
        if share:
            ranges[number] = end - share, end
    return ranges


def read(consumer: Consumer, topic: str, ranges: Mapping[int, tuple[int, int]]) -> list[KafkaMessage]:
    """The messages in `ranges`: for each partition, its first offset and its end."""
    consumer.assign([TopicPartition(topic, number, start) for number, (start, _) in ranges.items()])
    messages: list[KafkaMessage] = []
    open_ends = {number: end for number, (_, end) in ranges.items()}
    deadline = time.monotonic() + KAFKA
    while open_ends:
        chunk: list[Any] = consumer.consume(_AT_ONCE, timeout=0.2)
        if chunk:
            deadline = time.monotonic() + KAFKA
        elif time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no message came"))
        for message in chunk:
            number, error = message.partition(), message.error()
            if error is not None and error.code() == NO_GROUP:
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if error is None and message.offset() < open_ends.get(number, 0):
                messages.append(message_of(message))
            # The partition is read: up to its end, or to an earlier one if its last offsets hold no messages.
            if error is not None or message.offset() + 1 >= open_ends.get(number, 0):
                open_ends.pop(number, None)
    return messages


def message_of(message: Any) -> KafkaMessage:
    kind, timestamp = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    return KafkaMessage(
        partition=message.partition(),
        offset=message.offset(),
        timestamp=timestamp if kind else None,
        key=message.key(),
        value=message.value(),
        headers=headers,
    )


def _missing(cluster: Cluster, topic: str, topics: Iterable[str]) -> UnreachableError:
    names = sorted(name for name in topics if not name.startswith("__"))
    hint = the_names("topic", names) if names else "there are no topics yet"
    message = f"there is no topic `{topic}` in the cluster at {cluster.bootstrap}"
    return NoTopic("no-topic", message, did_you_mean(topic, names, hint))
