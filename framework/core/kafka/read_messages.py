"""Some messages of a topic, read without Spark: the first, the last, or new ones. Joins no group and commits nothing.

Limit: messages of several partitions are in the order of their timestamps; within a partition, they keep Kafka's order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from framework.base.patience import KAFKA_WATCHED
from framework.core.kafka import newest_messages
from framework.core.kafka.cluster import Kafka, LoginWatch, refuse_silent
from framework.core.kafka.login import client_settings
from framework.core.kafka.newest_messages import KafkaMessage
from framework.core.rules.protocol import parted
from framework.plan import SecretStore, Topic

OffsetRanges = Mapping[int, tuple[int, int]]  # the first offset and the end of each partition
_AT_ONCE = 500  # messages
_WIDER = 4  # factor of the next range, where offsets without messages gave too few messages


def bounds(topic: Topic, secrets: SecretStore) -> dict[int, tuple[int, int]]:
    """The bounds of each partition. Raises within seconds if Kafka does not answer or has no such topic."""
    refuse_silent(topic.cluster)
    state = Kafka(topic.cluster, secrets, KAFKA_WATCHED).topic_state(topic)
    return {parted(partition)[1]: (state.starts[partition], end) for partition, end in state.ends.items()}


def read_some(
    topic: Topic, secrets: SecretStore, offsets: OffsetRanges, limit: int, side: Literal["earliest", "latest"]
) -> list[KafkaMessage]:
    """At most `limit` messages between these offsets: the earliest or the latest ones."""
    by_partition: dict[int, list[KafkaMessage]] = {number: [] for number in offsets}
    open_ranges = {number: (start, end) for number, (start, end) in offsets.items() if start < end}
    width = limit
    with _reading(topic, secrets) as consumer:
        while open_ranges:
            ranges, open_ranges = _parts(open_ranges, width, side)
            new_messages: dict[int, list[KafkaMessage]] = {number: [] for number in ranges}
            for message in newest_messages.read(consumer, topic.kafka_name, ranges):
                new_messages[message.partition].append(message)
            for number, messages in new_messages.items():
                by_partition[number] = messages + by_partition[number] if side == "latest" else by_partition[number] + messages
            open_ranges = {
                number: rest for number, rest in open_ranges.items() if rest[0] < rest[1] and len(by_partition[number]) < limit
            }
            width *= _WIDER
    if side == "earliest":
        return list(heapq.merge(*by_partition.values(), key=_moment))[:limit]
    backwards = heapq.merge(
        *(reversed(messages) for messages in reversed(by_partition.values())), key=lambda message: -_moment(message)
    )
    return [message for message, _ in zip(backwards, range(limit), strict=False)][::-1]


def follow(topic: Topic, secrets: SecretStore, starts: Mapping[int, int], stopped: Callable[[], bool]) -> Iterator[KafkaMessage]:
    """Yields the messages from these offsets on, as they arrive, until `stopped` returns true."""
    with _reading(topic, secrets) as consumer:
        consumer.assign([TopicPartition(topic.kafka_name, number, offset) for number, offset in starts.items()])
        while not stopped():
            for message in consumer.consume(_AT_ONCE, timeout=0.2):
                error = message.error()
                if error is None:
                    yield newest_messages.message_of(message)
                elif error.code() not in (KafkaError._PARTITION_EOF, newest_messages.NO_GROUP) and not error.retriable():
                    raise KafkaException(error)


def _parts(offsets: OffsetRanges, width: int, side: str) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
    """Cuts `width` offsets from the beginning or the end of each partition's; returns these and the rest."""
    ranges, rest = {}, {}
    for number, (start, end) in offsets.items():
        cut = max(start, end - width) if side == "latest" else min(end, start + width)
        ranges[number], rest[number] = ((cut, end), (start, cut)) if side == "latest" else ((start, cut), (cut, end))
    return ranges, rest


@contextmanager
def _reading(topic: Topic, secrets: SecretStore) -> Iterator[Consumer]:
    watch = LoginWatch()
    settings = {**client_settings(topic.cluster, secrets), **watch.settings, "auto.offset.reset": "earliest"}
    settings |= {"group.id": "sluice-peek", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(settings)
    try:
        yield consumer
    except KafkaException as error:
        raise watch.unreachable(topic.cluster, consumer, error) from None
    finally:
        consumer.close()


def _moment(message: KafkaMessage) -> int:
    return message.timestamp or 0
