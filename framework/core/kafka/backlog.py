"""The backlog of topics after a position: an exact count, with estimates of size and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from framework.core.kafka.cluster import Kafka
from framework.core.rules.protocol import Partition, Position, TopicState, next_range, parted

SPEED = 250_000.0  # messages a second, for a table whose own batches do not tell
_SAMPLED = 10  # partitions


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A topic's messages up to the last stable offsets. Bytes and speed, which is messages a second, are estimates."""

    topic: str  # as Kafka calls it
    offsets: tuple[tuple[int, int, int], ...]  # each partition, its next offset, its end
    bytes: int | None
    speed: float
    measured: bool  # by the table's own batches

    @property
    def messages(self) -> int:
        return sum(end - start for _, start, end in self.offsets)

    @property
    def seconds(self) -> float:
        return self.messages / self.speed


def waiting(kafka: Kafka, position: Position, topic: TopicState, speed: float | None) -> Iterator[Waiting]:
    range_ = next_range(position, topic, 1)
    starts = range_.starts if range_ else topic.ends
    for name in topic.topics:
        topic_starts = {partition: start for partition, start in starts.items() if parted(partition)[0] == name}
        size = message_size(kafka, topic_starts, topic)
        offsets = sorted(
            (parted(partition)[1], start, max(start, topic.ends[partition])) for partition, start in topic_starts.items()
        )
        yield Waiting(
            topic=name,
            offsets=tuple(offsets),
            bytes=None if size is None else round(size * sum(end - start for _, start, end in offsets)),
            speed=speed or SPEED,
            measured=speed is not None,
        )


def message_size(kafka: Kafka, starts: Mapping[Partition, int], topic: TopicState) -> float | None:
    """The mean size of waiting messages, estimated from a sample of the fullest partitions."""
    counts = {partition: topic.ends[partition] - start for partition, start in starts.items() if topic.ends[partition] > start}
    fullest = sorted(counts, key=lambda partition: (-counts[partition], partition))[:_SAMPLED]
    return kafka.message_size([(partition, starts[partition]) for partition in fullest]) if fullest else None
