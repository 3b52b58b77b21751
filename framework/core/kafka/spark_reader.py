"""The messages of an exact range of offsets, as a frame of Spark.

Cost: the consumers of a batch stay open for five minutes and serve the next one. Few messages are read by few tasks, each of which makes
a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from secrets import token_bytes
from typing import TYPE_CHECKING

from framework.core.rules.protocol import Partition, Range, parted
from framework.plan import Cluster, Pipeline, SecretStore
from framework.systems.secrets import reveal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASK_MESSAGES = 2_000  # messages; a task takes as long to begin and to end as to read about so many
_TASK_PARTITIONS = 8  # which it reads one after the other
_KEY = token_bytes(32)
_JAAS = "org.apache.kafka.common.security.{module} required username={username} password={password};"


def read(spark: SparkSession, pipeline: Pipeline, range_: Range, secrets: SecretStore) -> DataFrame:
    settings = options(pipeline, range_, secrets)
    frame = spark.read.format("kafka").options(**settings).load()
    if pipeline.explodes:
        return frame
    task_count = max(-(-range_.size // _TASK_MESSAGES), -(-len(range_.starts) // _TASK_PARTITIONS))
    return frame.coalesce(task_count) if task_count < len(range_.starts) else frame


def options(pipeline: Pipeline, range_: Range, secrets: SecretStore) -> dict[str, str]:
    """The options of Spark's Kafka source."""
    topic = pipeline.topic
    starts, ends = _by_topic(range_.starts), _by_topic(range_.ends)
    consumer = {
        "kafka.bootstrap.servers": topic.cluster.bootstrap,
        "kafka.isolation.level": "read_committed",
        # Each partition ends with a fetch that waits this long for messages that do not come.
        "kafka.fetch.max.wait.ms": "1",
        "kafka.max.poll.records": "20000",
        # A consumer outlives its batch, and perhaps all brokers that it knows.
        "kafka.metadata.recovery.strategy": "rebootstrap",
        **login(topic.cluster, secrets),
    }
    # Spark reuses an open consumer, with the messages it has fetched, by this name: another topic of the same name, or another login,
    # must have another name. Brokers see the name, so it must not help to guess a password. No consumer joins the group, and nothing
    # is committed to it.
    identity = json.dumps([sorted(consumer.items()), sorted(range_.topics.items())])
    return {
        **consumer,
        "kafka.group.id": f"sluice-{hashlib.blake2b(identity.encode(), key=_KEY, digest_size=8).hexdigest()}",
        "assign": json.dumps({name: sorted(offsets) for name, offsets in starts.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "failOnDataLoss": "true",
        "includeHeaders": "true" if topic.headers or pipeline.bad_rows != "drop" else "false",
        "kafkaConsumer.pollTimeoutMs": "30000",
    }


def read_topic(
    spark: SparkSession, cluster: Cluster, starts: Mapping[Partition, int], ends: Mapping[Partition, int], secrets: SecretStore
) -> DataFrame:
    """The messages of one topic between these offsets, with their headers."""
    assigned = {name: sorted(offsets) for name, offsets in _by_topic(starts).items()}
    settings = {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "kafka.isolation.level": "read_committed",
        **login(cluster, secrets),
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(_by_topic(starts)),
        "endingOffsets": json.dumps(_by_topic(ends)),
        "includeHeaders": "true",
    }
    return spark.read.format("kafka").options(**settings).load()


def _by_topic(offsets: Mapping[Partition, int]) -> dict[str, dict[int, int]]:
    by_topic: dict[str, dict[int, int]] = {}
    for partition, offset in offsets.items():
        topic, number = parted(partition)
        by_topic.setdefault(topic, {})[number] = offset
    return by_topic


def login(cluster: Cluster, secrets: SecretStore) -> dict[str, str]:
    """The options of Spark's Kafka source and sink for a cluster's login."""
    security = cluster.security
    if security.protocol == "PLAINTEXT":
        return {}
    options = {"kafka.security.protocol": security.protocol}
    if security.mechanism and security.username and security.password:
        module = "plain.PlainLoginModule" if security.mechanism == "PLAIN" else "scram.ScramLoginModule"
        username, password = (json.dumps(reveal(value, secrets)) for value in (security.username, security.password))
        options["kafka.sasl.mechanism"] = security.mechanism
        options["kafka.sasl.jaas.config"] = _JAAS.format(module=module, username=username, password=password)
    return options
