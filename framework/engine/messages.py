"""The messages of an exact range of offsets, as a frame of Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from framework.engine.protocol import Partition, Range, parted
from framework.plan.model import Pipeline, SecretStore
from framework.secrets import reveal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_JAAS = "org.apache.kafka.common.security.{module} required username={username} password={password};"


def read(spark: SparkSession, pipeline: Pipeline, range_: Range, secrets: SecretStore) -> DataFrame:
    topic = pipeline.topic
    starts, ends = _by_topic(range_.starts), _by_topic(range_.ends)
    options = {
        "kafka.bootstrap.servers": topic.cluster.bootstrap,
        "assign": json.dumps({name: sorted(offsets) for name, offsets in starts.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "includeHeaders": "true" if topic.headers or pipeline.bad_rows == "quarantine" else "false",
        # Each partition ends with a fetch that waits this long for messages that do not come.
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.poll.records": "20000",
        "kafkaConsumer.pollTimeoutMs": "30000",
        **_login(pipeline, secrets),
    }
    return spark.read.format("kafka").options(**options).load()


def _by_topic(offsets: Mapping[Partition, int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for each, offset in offsets.items():
        topic, number = parted(each)
        found.setdefault(topic, {})[number] = offset
    return found


def _login(pipeline: Pipeline, secrets: SecretStore) -> dict[str, str]:
    security = pipeline.topic.cluster.security
    if security.protocol == "PLAINTEXT":
        return {}
    options = {"kafka.security.protocol": security.protocol}
    if security.mechanism and security.username and security.password:
        module = "plain.PlainLoginModule" if security.mechanism == "PLAIN" else "scram.ScramLoginModule"
        username, password = (json.dumps(reveal(value, secrets)) for value in (security.username, security.password))
        options["kafka.sasl.mechanism"] = security.mechanism
        options["kafka.sasl.jaas.config"] = _JAAS.format(module=module, username=username, password=password)
    return options
