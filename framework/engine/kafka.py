"""What Kafka says of a topic, without Spark: its id, its partitions, its first and its last stable offsets."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from framework.engine.protocol import TopicState
from framework.engine.secrets import reveal
from framework.errors import UnreachableError
from framework.plan.model import Cluster, SecretStore, Topic

_PATIENCE = 10.0  # seconds until Kafka counts as not answering
_LOGIN = {
    "protocol": "security.protocol",
    "mechanism": "sasl.mechanism",
    "username": "sasl.username",
    "password": "sasl.password",
}


class Kafka:
    """A connection to one cluster."""

    def __init__(self, cluster: Cluster, secrets: SecretStore) -> None:
        self.cluster = cluster
        self._admin = AdminClient({**client_settings(cluster, secrets), "log_level": 0})
        self._cluster_id = ""

    def look(self, topic: Topic) -> TopicState:
        """The topic now. Its id is asked before and after its offsets, which would else be those of two topics of one name."""
        while True:
            described = self._describe(topic)
            partitions = sorted(partition.id for partition in described.partitions)
            starts = self._offsets(topic, partitions, OffsetSpec.earliest())
            ends = self._offsets(topic, partitions, OffsetSpec.latest())
            if self.topic_id(topic) == str(described.topic_id):
                return TopicState(self.cluster_id(), str(described.topic_id), starts, ends)

    def cluster_id(self) -> str:
        if not self._cluster_id:
            self._cluster_id = str(self._ask(lambda: self._admin.describe_cluster(request_timeout=_PATIENCE).result()).cluster_id)
        return self._cluster_id

    def topic_id(self, topic: Topic) -> str:
        return str(self._describe(topic).topic_id)

    def offsets_at(self, topic: Topic, moment: datetime) -> dict[int, int]:
        """The first offset of each partition at or after a moment; its end where there is none."""
        partitions = sorted(partition.id for partition in self._describe(topic).partitions)
        found = self._offsets(topic, partitions, OffsetSpec.for_timestamp(int(moment.timestamp() * 1000)))
        ends = self._offsets(topic, partitions, OffsetSpec.latest())
        return {partition: ends[partition] if offset < 0 else offset for partition, offset in found.items()}

    def _describe(self, topic: Topic) -> Any:
        name = topic.kafka_name
        asked = TopicCollection([name])
        # A topic that was just made is unknown to a broker for a moment.
        for attempt in range(3):
            try:
                return self._ask(lambda: self._admin.describe_topics(asked, request_timeout=_PATIENCE)[name].result())
            except KafkaException as error:
                if error.args[0].name() not in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                    raise self._unreachable(error) from None
                time.sleep(0.2 * attempt)
        raise UnreachableError(
            "no-topic",
            f"there is no topic `{name}` in the cluster `{self.cluster.name}` ({self.cluster.bootstrap})",
            f"create it, or correct `kafka_name` of the topic at {topic.where}",
        )

    def _offsets(self, topic: Topic, partitions: list[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(topic.kafka_name, each): spec for each in partitions}
        # READ_COMMITTED gives the last stable offset; behind it a transaction may still be open.
        try:
            answers = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_PATIENCE)
            return {each.partition: int(self._ask(answer.result).offset) for each, answer in answers.items()}
        except KafkaException as error:
            raise self._unreachable(error) from None

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except KafkaException as error:
            if error.args[0].name() in ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_AUTHENTICATION", "_SSL"):
                raise self._unreachable(error) from None
            raise

    def _unreachable(self, error: KafkaException) -> UnreachableError:
        said = error.args[0]
        hint = "is it running? `sluice services up kafka` starts one on this machine"
        if said.name() in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"):
            hint = f"look at `security` of the cluster `{self.cluster.name}`"
        return UnreachableError("kafka-unreachable", f"Kafka at {self.cluster.bootstrap} does not answer: {said.str()}", hint)


def client_settings(cluster: Cluster, secrets: SecretStore) -> dict[str, Any]:
    """librdkafka's settings for talking to a cluster."""
    settings = {"bootstrap.servers": cluster.bootstrap}
    for name, setting in _LOGIN.items():
        value = getattr(cluster.security, name)
        if value is not None:
            settings[setting] = reveal(value, secrets)
    return settings
