"""The messages of a test, in Kafka's place: exact offset ranges of them, as Spark's Kafka source would give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.core.rules.protocol import Partition, Range, TopicState, partition
from framework.plan import Message, Pipeline, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class GivenMessages:
    """A topic with the batches up to `batch`. Reading begins at the first message, whatever `start_from` says."""

    messages: tuple[Message, ...]
    batch: int
    slices: int = 1  # partitions of the frame

    def topic_state(self, *topics: Topic) -> TopicState:
        starts = {each: 0 for topic in topics for each in self._partitions(topic)}
        ends = dict(starts)
        for message in self.messages:
            if message.batch <= self.batch:
                ends[partition(message.topic, message.partition)] += 1
        return TopicState("test", self.topic_ids(*topics), starts, ends)

    def topic_ids(self, *topics: Topic) -> dict[str, str]:
        return {topic.kafka_name: topic.name for topic in topics}

    def starts(self, topic: Topic, state: TopicState) -> dict[Partition, int]:
        return dict.fromkeys(self._partitions(topic), 0)

    def read(self, spark: SparkSession, pipeline: Pipeline, range_: Range) -> DataFrame:
        import pyarrow

        rows = [
            {
                "key": each.key, "value": each.value, "topic": each.topic, "partition": each.partition, "offset": each.offset,
                "timestamp": each.timestamp, "timestampType": 0,
                "headers": [{"key": name, "value": value} for name, value in each.headers],
            }
            for each in self.messages
            if _within(each, range_)
        ]  # fmt: skip
        # As Arrow: a list of Python's objects would pass through a Python process, which takes longer than all the rest.
        frame = spark.createDataFrame(pyarrow.Table.from_pylist(rows, _schema()))
        return frame.coalesce(1) if self.slices == 1 else frame.repartition(self.slices)

    def _partitions(self, topic: Topic) -> list[Partition]:
        last = max((each.partition for each in self.messages if each.topic == topic.kafka_name), default=0)
        return [partition(topic.kafka_name, number) for number in range(last + 1)]


def _within(message: Message, range_: Range) -> bool:
    here = partition(message.topic, message.partition)
    return range_.starts.get(here, 0) <= message.offset < range_.ends.get(here, 0)


def _schema() -> Any:
    """The schema of Spark's Kafka source."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema([
        ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")), ("timestampType", pa.int32()), ("headers", pa.list_(header)),
    ])  # fmt: skip
