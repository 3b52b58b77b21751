"""The messages of exact offsets, as a frame of Spark. Our own source reads and decodes them, in columns: `MessageSource.java`.

Cost: the consumers of a batch stay open for five minutes and serve the next one. Few messages are read by few tasks, each of which makes
a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from framework.core.kafka.login import java_settings
from framework.core.rules.protocol import Partition, Range, parted
from framework.messages.encoding import decoder
from framework.plan import Cluster, Pipeline, SecretStore
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SOURCE = "sluice.MessageSource"
_TASK_MESSAGES = 2_000  # messages; a task takes as long to begin and to end as to read about so many
_TASK_PARTITIONS = 8  # which it reads one after the other
_SEVERAL_TASKS = 100_000  # messages of one partition that are worth a task of their own

Slice = tuple[str, int, int, int]  # a topic, a partition, the first offset, and the offset behind the last
# The name of the struct that a decoder makes, the part of the message, and the decoder's function.
DecoderCall = tuple[str, str, str]


def read(spark: SparkSession, pipeline: Pipeline, range_: Range, secrets: SecretStore) -> DataFrame:
    """The messages of a range, and what the topic's decoders make of them: a struct for each decoder, by its name."""
    slices = tuple(_slices(range_.starts, range_.ends))
    tasks = divided(slices, spark.sparkContext.defaultParallelism, together=not pipeline.explodes)
    calls = [(name, *decoder.called(sql)) for name, sql in pipeline.decoding.structs]
    read_options = options(pipeline.topic.cluster, range_.topics, tasks, secrets, calls)
    frame = spark.read.format(_SOURCE).options(**read_options).load()
    of_kafka = (column for column in frame.columns if "." not in column)
    return frame.selectExpr(*of_kafka, *(f"{_struct(name, frame.columns)} AS {name}" for name, _, _ in calls))


def read_topic(
    spark: SparkSession, cluster: Cluster, starts: Mapping[Partition, int], ends: Mapping[Partition, int], secrets: SecretStore
) -> DataFrame:
    """The messages of one topic between these offsets, as they are."""
    tasks = [[each] for each in _slices(starts, ends)]
    # Nobody knows the topic's id here: the consumers serve no other call.
    return spark.read.format(_SOURCE).options(**options(cluster, {"": token_hex(8)}, tasks, secrets)).load()


def read_bytes(frame: DataFrame) -> int:
    """The bytes of keys and values of the messages that were read for a frame. Each range counts once, however often it was read."""
    jvm: Any = frame.sparkSession._jvm
    with suppress(Exception):  # a number that is shown fails no batch
        return int(jvm.sluice.MessageSizes.of(frame._jdf))
    return 0


def options(
    cluster: Cluster,
    topic_ids: Mapping[str, str],
    tasks: Sequence[Sequence[Slice]],
    secrets: SecretStore,
    calls: Sequence[DecoderCall] = (),
) -> dict[str, str]:
    """The options of the source."""
    consumer = {"bootstrap.servers": cluster.bootstrap, **java_settings(cluster, secrets)}
    topics = dict(sorted(topic_ids.items()))
    return {"read": json.dumps({"consumer": consumer, "topics": topics, "decoders": calls, "tasks": tasks})}


def divided(slices: Sequence[Slice], cores: int, together: bool = True) -> list[list[Slice]]:
    """Returns what each task reads. One task reads few messages of several partitions, if `together`; several read a partition that has
    more messages than others."""
    size = sum(end - start for _, _, start, end in slices)
    task_count = max(-(-size // _TASK_MESSAGES), -(-len(slices) // _TASK_PARTITIONS))
    if together and task_count < len(slices):
        return [list(slices[number::task_count]) for number in range(task_count)]
    largest = max(_SEVERAL_TASKS, -(-size // cores))
    return [[part] for each in slices for part in _parts(each, largest)]


def _parts(whole: Slice, largest: int) -> Iterator[Slice]:
    topic, partition, start, end = whole
    count = -(-(end - start) // largest)
    for number in range(count):
        yield topic, partition, start + (end - start) * number // count, start + (end - start) * (number + 1) // count


def _slices(starts: Mapping[Partition, int], ends: Mapping[Partition, int]) -> Iterator[Slice]:
    for name, start in starts.items():
        if ends[name] > start:
            yield (*parted(name), start, ends[name])


def _struct(name: str, columns: Iterable[str]) -> str:
    """SQL of the struct of a decoder's columns."""
    prefix = f"{name}."
    names = [column.removeprefix(prefix) for column in columns if column.startswith(prefix)]
    return f"named_struct({', '.join(f'{literal(name)}, {identifier(prefix + name)}' for name in names)})"
