"""Sends messages to a topic by producers of a turn, which the next sender ends (`Turn.java`, `Sender.java`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from framework.base.errors import SluiceError
from framework.base.patience import KAFKA_TAKES
from framework.core.context.outage import outage_of
from framework.core.kafka import spark_reader, topics
from framework.core.kafka.acls import TRANSACTIONS
from framework.core.kafka.cluster import Kafka
from framework.core.kafka.login import java_settings
from framework.core.spark.causes import is_spark_gone, spark_ended
from framework.core.spark.java_errors import java_classes, text
from framework.plan import Cluster, SecretStore
from framework.sql.quote import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PRODUCER = {
    "acks": "all",
    "enable.idempotence": "true",
    "compression.type": "lz4",
    "linger.ms": "20",
    # The topic decides how large a message may be, not the producer.
    "max.request.size": str(100 << 20),
    "buffer.memory": str(128 << 20),
    "max.block.ms": str(round(KAFKA_TAKES * 1000)),
    "delivery.timeout.ms": str(round(KAFKA_TAKES * 1000) + 5000),
    "default.api.timeout.ms": str(round(KAFKA_TAKES * 1000)),
    "request.timeout.ms": "5000",
    "retry.backoff.ms": "10",  # else each producer waits a tenth of a second for its coordinator
    "transaction.timeout.ms": "60000",  # a sender that is gone holds up readers of committed messages for so long
}
SENDER = "sluice-sender"  # the header that names who sent a message
_TRIES = 3  # of a step whose producers a dead sender ended when it woke up
_TURN_LOST = "sluice.TurnLost"
_KAFKA = "org.apache.kafka.common.errors."
_TOO_LARGE = f"{_KAFKA}RecordTooLargeException"
_REFUSED = {f"{_KAFKA}{resource}AuthorizationException" for resource in ("Topic", "Cluster", "TransactionalId")} | {
    f"{_KAFKA}SaslAuthenticationException"
}


class NoTurn(Exception):
    """Another sender has taken the turn."""


@dataclass(frozen=True)
class Turn:
    """The right to send a table's rows to a topic. `java` is the Java object that holds it in Kafka (`Turn.java`)."""

    cluster: Cluster
    topic: str
    _: KW_ONLY
    sender: str  # the same for all that send this table's rows
    client: Mapping[str, str]
    java: Any


def take_turn(
    spark: SparkSession, cluster: Cluster, topic: str, partitions: int | None, sender: str, secrets: SecretStore
) -> Turn:
    """Takes the turn from an earlier process that sends to the topic as this `sender`: Kafka refuses the messages that it has not
    committed. Creates the topic if it is missing."""
    topics.ensure(cluster, secrets, topic, partitions)
    name = f"{TRANSACTIONS}{hashlib.sha256(sender.encode()).hexdigest()[:16]}"
    client = {"bootstrap.servers": cluster.bootstrap, **_PRODUCER, **java_settings(cluster, secrets)}
    jvm: Any = spark._jvm
    with _named_errors(cluster, topic):
        return Turn(cluster, topic, sender=name, client=client, java=jvm.sluice.Turn.take(client, name))


def sent_keys(spark: SparkSession, turn: Turn, secrets: SecretStore) -> DataFrame | None:
    """Returns the keys whose last message of this sender in a partition has a value, as the column `key`; None if the topic has
    no messages. The offset decides which message is the last, since the clocks of several senders differ."""
    from pyspark.sql import functions

    with _named_errors(turn.cluster, turn.topic):
        starts, ends = Kafka(turn.cluster, secrets).extent(turn.topic)
        if starts == ends:
            return None
        messages = spark_reader.read_topic(spark, turn.cluster, starts, ends, secrets)
        sender = f"CAST(filter(headers, header -> header.key = {literal(SENDER)})[0].value AS STRING) = {literal(turn.sender)}"
        own_messages = messages.where("key IS NOT NULL").where(f"coalesce({sender}, false)")
        last_messages = own_messages.groupBy("key", "partition").agg(
            functions.expr("max_by(value IS NULL, offset) AS is_deleted")
        )
        return last_messages.where("NOT is_deleted").select("key").distinct()


def send(messages: DataFrame, order: Sequence[str], turn: Turn, by_key: bool) -> int:
    """Sends messages with the columns `key`, `value` and `headers`, and returns their number. With `by_key`, the messages of a
    key are sent in their order."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = messages.sparkSession._jvm
    ordered = messages.repartition("key").sortWithinPartitions(*order) if by_key else messages
    rows = ordered.select("key", "value", "headers").coalesce(jvm.sluice.Turn.SENDERS)
    with _named_errors(turn.cluster, turn.topic):
        for _ in range(_TRIES):
            try:
                return int(jvm.sluice.Sender.send(rows._jdf, turn.client, turn.java, turn.topic))
            except Py4JJavaError as error:
                if _TURN_LOST not in java_classes(error):
                    raise
            if not turn.java.isHeld(turn.client):
                break
    raise NoTurn


@contextmanager
def _named_errors(cluster: Cluster, topic: str) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        if is_spark_gone(error):
            raise spark_ended() from None
        raise outage_of([cluster], error) or _named(error, cluster, topic) from None


def _named(error: Exception, cluster: Cluster, topic: str) -> SluiceError:
    classes = java_classes(error)
    if _TOO_LARGE in classes:
        hint = f"give the topic `{topic}` a larger `max.message.bytes`"
        return SluiceError("message-too-large", f"a row is larger than a message of `{topic}` may be: {_last(error)}", hint)
    if _REFUSED.intersection(classes):
        hint = f"`sluice access kafka-acls` prints what an administrator allows the login of the cluster `{cluster.name}`"
        return SluiceError(
            "kafka-refused", f"Kafka at {cluster.bootstrap} does not let rows into `{topic}`: {_last(error)}", hint
        )
    return SluiceError("not-sent", f"the topic `{topic}` did not take the rows: {text(error)}", "the next run sends them again")


def _last(error: Exception) -> str:
    return text(error).rpartition("Exception: ")[2]
