"""Some messages of a topic, read without Spark: the first, the last, or new ones. Joins no group and commits nothing.

Limit: across partitions they are in the order of their timestamps; within one they are as Kafka has them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from framework.base.patience import KAFKA_WATCHED
from framework.core.kafka import newest_messages
from framework.core.kafka.cluster import Kafka, client_settings, refuse_silent, unreachable
from framework.core.kafka.newest_messages import KafkaMessage
from framework.core.rules.protocol import parted
from framework.plan import SecretStore, Topic

Bounds = Mapping[int, tuple[int, int]]  # the first offset and the end of each partition
_AT_ONCE = 500  # messages
_WIDER = 4  # factor of the next range, where offsets without messages gave too few messages


def bounds(topic: Topic, secrets: SecretStore) -> dict[int, tuple[int, int]]:
    """The bounds of each partition. Raises soon where Kafka does not answer or has no such topic."""
    refuse_silent(topic.cluster)
    state = Kafka(topic.cluster, secrets, KAFKA_WATCHED).topic_state(topic)
    return {parted(each)[1]: (state.starts[each], end) for each, end in state.ends.items()}


def some(
    topic: Topic, secrets: SecretStore, within: Bounds, most: int, which: Literal["earliest", "latest"]
) -> list[KafkaMessage]:
    """At most `most` messages between these offsets."""
    by_partition: dict[int, list[KafkaMessage]] = {number: [] for number in within}
    left = {number: (first, end) for number, (first, end) in within.items() if first < end}
    width = most
    with _reading(topic, secrets) as consumer:
        while left:
            ranges, left = _parts(left, width, which)
            read: dict[int, list[KafkaMessage]] = {number: [] for number in ranges}
            for message in newest_messages.read(consumer, topic.kafka_name, ranges):
                read[message.partition].append(message)
            for number, messages in read.items():
                by_partition[number] = messages + by_partition[number] if which == "latest" else by_partition[number] + messages
            left = {number: rest for number, rest in left.items() if rest[0] < rest[1] and len(by_partition[number]) < most}
            width *= _WIDER
    if which == "earliest":
        return list(heapq.merge(*by_partition.values(), key=_moment))[:most]
    backwards = heapq.merge(
        *(reversed(messages) for messages in reversed(by_partition.values())), key=lambda message: -_moment(message)
    )
    return [message for message, _ in zip(backwards, range(most), strict=False)][::-1]


def follow(topic: Topic, secrets: SecretStore, from_: Mapping[int, int], stopped: Callable[[], bool]) -> Iterator[KafkaMessage]:
    """The messages from these offsets on, as they come, until it is stopped."""
    with _reading(topic, secrets) as consumer:
        consumer.assign([TopicPartition(topic.kafka_name, number, offset) for number, offset in from_.items()])
        while not stopped():
            for message in consumer.consume(_AT_ONCE, timeout=0.2):
                error = message.error()
                if error is None:
                    yield newest_messages.message_of(message)
                elif error.code() not in (KafkaError._PARTITION_EOF, newest_messages.NO_GROUP) and not error.retriable():
                    raise KafkaException(error)


def _parts(left: Bounds, width: int, which: str) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
    """For each partition, `width` offsets from its first or its last on, and the rest of its offsets."""
    ranges, rest = {}, {}
    for number, (first, end) in left.items():
        cut = max(first, end - width) if which == "latest" else min(end, first + width)
        ranges[number], rest[number] = ((cut, end), (first, cut)) if which == "latest" else ((first, cut), (cut, end))
    return ranges, rest


@contextmanager
def _reading(topic: Topic, secrets: SecretStore) -> Iterator[Consumer]:
    settings = {**client_settings(topic.cluster, secrets), "log_level": 0, "auto.offset.reset": "earliest"}
    settings |= {"group.id": "sluice-peek", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(settings)
    try:
        yield consumer
    except KafkaException as error:
        raise unreachable(topic.cluster, error.args[0]) from None
    finally:
        consumer.close()


def _moment(message: KafkaMessage) -> int:
    return message.timestamp or 0
