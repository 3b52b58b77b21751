"""Lists the topics of a Kafka cluster with their partitions, and creates topics, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from framework.base.errors import KafkaAway, SluiceError, UnreachableError
from framework.base.patience import KAFKA_TAKES, KAFKA_WATCHED
from framework.core.kafka.cluster import Kafka, LoginWatch, refuse_silent
from framework.core.kafka.login import client_settings
from framework.core.rules.protocol import partition
from framework.plan import Cluster, SecretStore, Topic

_KNOWN_SOON = 8  # times a broker is asked for a topic that it has created


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """A partition; its leader is a broker, None where it has none. The offsets are None where they are unknown."""

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Listed:
    """A topic of the specs. `partitions` is None if Kafka has no such topic."""

    topic: Topic
    partitions: tuple[PartitionState, ...] | None
    trouble: str = ""  # why the offsets are not known

    @property
    def messages(self) -> int | None:
        """The number of offsets: of messages, if the topic is neither compacted nor transactional."""
        if self.partitions is None or any(state.start is None or state.end is None for state in self.partitions):
            return None
        return sum((state.end or 0) - (state.start or 0) for state in self.partitions)


def listed(cluster: Cluster, secrets: SecretStore, topics: Iterable[Topic]) -> Iterator[Listed]:
    """Yields these topics of one cluster with their partitions. Raises within seconds if no server answers."""
    wanted_topics = tuple(topics)
    refuse_silent(cluster)
    kafka = Kafka(cluster, secrets, KAFKA_WATCHED)
    kafka.cluster_id()  # raises a named error where no server answers
    watch = LoginWatch()
    admin = AdminClient({**client_settings(cluster, secrets), **watch.settings})
    names = TopicCollection(list(dict.fromkeys(topic.kafka_name for topic in wanted_topics)))
    answers = admin.describe_topics(names, request_timeout=KAFKA_WATCHED)
    for topic in wanted_topics:
        description = _described(answers[topic.kafka_name], partial(watch.unreachable, cluster, admin))
        yield Listed(topic, None) if description is None else _listed(kafka, topic, description)


def ensure(cluster: Cluster, secrets: SecretStore, name: str, partitions: int | None) -> bool:
    """Creates a topic if Kafka does not have it, with the cluster's default number of replicas and, without `partitions`, of
    partitions. Returns whether it was created."""
    refuse_silent(cluster)
    watch = LoginWatch()
    admin = AdminClient({**client_settings(cluster, secrets), **watch.settings})
    for attempt in range(_KNOWN_SOON):  # a topic that was just created is unknown to a broker for a moment
        answer = admin.describe_topics(TopicCollection([name]), request_timeout=KAFKA_WATCHED)[name]
        if _described(answer, partial(watch.unreachable, cluster, admin)) is not None:
            return attempt > 0
        if attempt == 0:
            _create(admin, name, partitions)
        else:
            time.sleep(0.1 * attempt)
    raise KafkaAway("kafka-unreachable", f"Kafka at {cluster.bootstrap} created `{name}` and does not know it yet", "run again")


def _create(admin: AdminClient, name: str, partitions: int | None) -> None:
    new_topic = NewTopic(name, num_partitions=partitions or -1, replication_factor=-1)
    try:
        admin.create_topics([new_topic], request_timeout=KAFKA_TAKES)[name].result()
    except KafkaException as error:
        kafka_error = error.args[0]
        if kafka_error.name() != "TOPIC_ALREADY_EXISTS":  # it was created in the meantime
            amount = f"with {partitions} partitions" if partitions else ""
            raise SluiceError(
                "topic-not-created",
                f"Kafka did not create the topic `{name}`: {kafka_error.str()}",
                f"create it by hand {amount}, or check the cluster's permissions and limits".replace(" ,", ","),
            ) from None


def _described(answer: Any, failed: Callable[[KafkaException], UnreachableError]) -> Any:
    try:
        return answer.result()
    except KafkaException as error:
        if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            return None
        raise failed(error) from None


def _listed(kafka: Kafka, topic: Topic, description: Any) -> Listed:
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    trouble = ""
    try:
        state = kafka.topic_state(topic)
        starts, ends = dict(state.starts), dict(state.ends)
    except UnreachableError as error:  # a partition without a leader has no offsets
        trouble = error.message
    partitions = []
    for info in sorted(description.partitions, key=lambda item: item.id):
        name = partition(topic.kafka_name, info.id)
        leader = None if info.leader is None or info.leader.id < 0 else int(info.leader.id)
        partitions.append(
            PartitionState(
                number=info.id,
                leader=leader,
                replicas=_brokers(info.replicas),
                in_sync=_brokers(info.isr),
                start=starts.get(name),
                end=ends.get(name),
            )
        )
    return Listed(topic, tuple(partitions), trouble)


def _brokers(nodes: Iterable[Any]) -> tuple[int, ...]:
    return tuple(sorted(node.id for node in nodes))
