"""Sends messages to a topic with Spark's Kafka sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.engine.kafka import topics
from framework.engine.kafka.spark_reader import login
from framework.engine.outage import outage_of
from framework.engine.spark.causes import is_spark_gone, spark_ended
from framework.engine.spark.java_errors import java_classes, text
from framework.errors import SluiceError
from framework.model import Cluster, SecretStore
from framework.patience import KAFKA_TAKES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PRODUCER = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",  # neither doubles nor swaps messages where one has to be sent again
    "kafka.compression.type": "lz4",
    "kafka.linger.ms": "20",
    # The topic decides how large a message may be, not the producer.
    "kafka.max.request.size": str(100 << 20),
    "kafka.buffer.memory": str(128 << 20),
    "kafka.max.block.ms": str(round(KAFKA_TAKES * 1000)),
    "kafka.delivery.timeout.ms": str(round(KAFKA_TAKES * 1000) + 5000),
    "kafka.request.timeout.ms": "5000",
}
_KAFKA = "org.apache.kafka.common.errors."
_TOO_LARGE = f"{_KAFKA}RecordTooLargeException"
_REFUSED = {f"{_KAFKA}{each}AuthorizationException" for each in ("Topic", "Cluster")} | {f"{_KAFKA}SaslAuthenticationException"}


def send(
    messages: DataFrame, order: Sequence[str], cluster: Cluster, topic: str, partitions: int | None, secrets: SecretStore, by_key: bool
) -> int:  # fmt: skip
    """Sends messages with the columns `key`, `value` and `headers`, `by_key` those of a key in their order, and returns how many. The
    topic is created if it is missing."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import Observation, functions

    topics.ensure(cluster, secrets, topic, partitions)
    observed = Observation()
    messages = messages.observe(observed, functions.count(functions.lit(1)).alias("rows"))
    ordered = messages.repartition("key").sortWithinPartitions(*order) if by_key else messages
    settings = {"kafka.bootstrap.servers": cluster.bootstrap, **_PRODUCER, **login(cluster, secrets)}
    try:
        writer = ordered.select("key", "value", "headers").write.format("kafka").options(**settings)
        writer.option("topic", topic).option("includeHeaders", "true").mode("append").save()
    except (Py4JError, PySparkException, OSError) as error:
        if is_spark_gone(error):
            raise spark_ended() from None
        raise outage_of([cluster], error) or _named(error, cluster, topic) from None
    return int(observed.get["rows"])


def _named(error: Exception, cluster: Cluster, topic: str) -> SluiceError:
    classes = java_classes(error)
    if _TOO_LARGE in classes:
        hint = f"give the topic `{topic}` a larger `max.message.bytes`"
        return SluiceError("message-too-large", f"a row is larger than a message of `{topic}` may be: {_last(error)}", hint)
    if _REFUSED.intersection(classes):
        hint = f"allow the login of the cluster `{cluster.name}` to write to it"
        return SluiceError(
            "kafka-refused", f"Kafka at {cluster.bootstrap} does not let rows into `{topic}`: {_last(error)}", hint
        )
    return SluiceError("not-sent", f"the topic `{topic}` did not take the rows: {text(error)}", "the next run sends them again")


def _last(error: Exception) -> str:
    return text(error).rpartition("Exception: ")[2]
