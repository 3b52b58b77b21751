"""The messages of a test in place of Kafka: exact offset ranges of them, in the columns of Spark's Kafka source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.core.rules.protocol import Partition, Range, TopicState, partition
from framework.plan import Message, Pipeline, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class GivenMessages:
    """The topics with the batches up to `batch`. Reading begins at the first message, whatever `start_from` says."""

    messages: tuple[Message, ...]
    batch: int
    slices: int = 1  # partitions of the frame

    def topic_state(self, *topics: Topic) -> TopicState:
        starts = {partition: 0 for topic in topics for partition in self._partitions(topic)}
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
                "key": message.key, "value": message.value, "topic": message.topic, "partition": message.partition,
                "offset": message.offset,
                "timestamp": message.timestamp, "timestampType": 0,
                "headers": [{"key": name, "value": value} for name, value in message.headers],
            }
            for message in self.messages
            if _within(message, range_)
        ]  # fmt: skip
        # Through Arrow: a list of Python's objects would pass through a Python process, which takes longer than everything else.
        frame = spark.createDataFrame(pyarrow.Table.from_pylist(rows, _schema()))
        return frame.coalesce(1) if self.slices == 1 else frame.repartition(self.slices)

    def _partitions(self, topic: Topic) -> list[Partition]:
        last_number = max((message.partition for message in self.messages if message.topic == topic.kafka_name), default=0)
        return [partition(topic.kafka_name, number) for number in range(last_number + 1)]


def _within(message: Message, range_: Range) -> bool:
    message_partition = partition(message.topic, message.partition)
    return range_.starts.get(message_partition, 0) <= message.offset < range_.ends.get(message_partition, 0)


def _schema() -> Any:
    """The schema of Spark's Kafka source."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema([
        ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")), ("timestampType", pa.int32()), ("headers", pa.list_(header)),
    ])  # fmt: skip
