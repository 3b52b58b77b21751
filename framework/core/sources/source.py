"""The source of a pipeline's rows: Kafka topics, or a table. A batch uses both the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from framework.core.rules import protocol
from framework.core.rules.protocol import Partition, Position, Range, TopicState
from framework.plan import Pipeline, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SourceReader(Protocol):
    """A source: its state, the next range, and the rows of a range."""

    def topic_state(self) -> TopicState: ...

    def ids(self) -> Mapping[str, str]:
        """The ids that distinguish a topic or table from a later one of the same name."""
        ...

    def starts(self, state: TopicState, known_topics: Mapping[str, str]) -> dict[Partition, int]:
        """The offsets at which reading begins in topics that are not in `known_topics`."""
        ...

    def next(self, position: Position, state: TopicState) -> Range | None: ...

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        """The rows of a range, for the batch of this number."""
        ...


class SourceWithCounts(SourceReader, Protocol):
    """A source that counts what waits, without Spark."""

    def lag(self, range_: Range | None) -> int:
        """The number of messages or rows that wait."""
        ...

    def at_most(self, state: TopicState) -> int:
        """The most messages or rows that a table without any of them has to read."""
        ...


class MessageStore(Protocol):
    """The source of messages: a Kafka cluster, or the messages of a test."""

    def topic_state(self, *topics: Topic) -> TopicState:
        """The current state of the topics."""

    def topic_ids(self, *topics: Topic) -> dict[str, str]: ...

    def starts(self, topic: Topic, state: TopicState) -> dict[Partition, int]:
        """The offsets at which a table without rows of this topic begins."""

    def read(self, spark: SparkSession, pipeline: Pipeline, range_: Range) -> DataFrame:
        """The messages of exactly these offsets, with the columns that Spark's Kafka source has."""


@dataclass(frozen=True)
class TopicsReader:
    """Topics as a source. `until` are offsets at which this run stops."""

    pipeline: Pipeline
    kafka: MessageStore
    until: Mapping[Partition, int] | None = None

    def topic_state(self) -> TopicState:
        return self.kafka.topic_state(*self.pipeline.topics)

    def ids(self) -> Mapping[str, str]:
        return self.kafka.topic_ids(*self.pipeline.topics)

    def starts(self, state: TopicState, known_topics: Mapping[str, str]) -> dict[Partition, int]:
        new_topics = [topic for topic in self.pipeline.topics if topic.kafka_name not in known_topics]
        return {partition: offset for topic in new_topics for partition, offset in self.kafka.starts(topic, state).items()}

    def next(self, position: Position, state: TopicState) -> Range | None:
        if self.until is not None:
            ends = {
                partition: max(position.ends.get(partition, 0), min(end, self.until.get(partition, end)))
                for partition, end in state.ends.items()
            }
            state = replace(state, ends=ends)
        return protocol.next_range(position, state, self.pipeline.batch_rows)

    def lag(self, range_: Range | None) -> int:
        return range_.waiting if range_ else 0

    def at_most(self, state: TopicState) -> int:
        return sum(
            max(0, min(end, (self.until or {}).get(partition, end)) - state.starts[partition])
            for partition, end in state.ends.items()
        )

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        return self.kafka.read(spark, self.pipeline, range_)
