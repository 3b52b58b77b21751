"""A topic's state in Kafka, without Spark: its id, its partitions, its first and its last stable offsets."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, OffsetSpec

from framework.base.errors import KafkaAway, KafkaForbids, NoTopic, UnreachableError
from framework.base.home import home
from framework.base.hosts import remote_addresses
from framework.base.patience import CONNECTING, KAFKA
from framework.core.kafka import spark_reader
from framework.core.kafka.acls import TRANSACTIONS
from framework.core.kafka.login import client_settings
from framework.core.rules.protocol import Partition, Range, TopicState, parted, partition
from framework.machine.services import process
from framework.plan import Cluster, Pipeline, SecretStore, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SAMPLING = 2.0  # seconds to wait for messages whose sizes are measured
_TRIES = 4
_LEADERLESS = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PART")  # of a partition just made or moved
_LOGIN_FAILED = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL")
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token:"
# What OAuth 2 answers where the client is to blame.
_REFUSED = re.compile(
    "invalid_client|invalid_grant|invalid_request|invalid_scope|unauthorized_client|unsupported_grant_type|access_denied|not_authorized"
    "|Unauthorized|Forbidden|decode JWT|extension"
)
_LOGIN_WORDS = re.compile(rf"SSL handshake failed|SSL alert number (4\d|116)|{re.escape(_NO_TOKEN)}")
_RUNNING = "is it running? `sluice services up kafka` starts one on this machine"
_ELSEWHERE = "is it running, and can this machine reach it? See `bootstrap` and `security` of the cluster"


class Kafka:
    """A connection to one cluster."""

    def __init__(self, cluster: Cluster, secrets: SecretStore, patience: float = KAFKA) -> None:
        self.cluster = cluster
        self._secrets = secrets
        self._patience = patience
        self._login = client_settings(cluster, secrets)
        self._watch = LoginWatch()
        self._settings = {**self._login, **self._watch.settings}
        self._admin = AdminClient(self._settings)
        self._cluster_id = ""

    def has_login(self, secrets: SecretStore) -> bool:
        """Whether this connection uses the login that the secrets contain now."""
        return self._login == client_settings(self.cluster, secrets)

    def topic_state(self, *topics: Topic) -> TopicState:
        """The current state of the topics. Reads their ids before and after the offsets, so that both belong to the same topics."""
        while True:
            descriptions = self._describe(topics)
            partitions = _partitions(descriptions)
            starts = self._offsets(partitions, OffsetSpec.earliest())
            ends = self._offsets(partitions, OffsetSpec.latest())
            ids = _ids(descriptions)
            if self.topic_ids(*topics) == ids:
                return TopicState(self.cluster_id(), ids, starts, ends)

    def cluster_id(self) -> str:
        if not self._cluster_id:
            try:
                self._cluster_id = str(self._admin.describe_cluster(request_timeout=self._patience).result().cluster_id)
            except KafkaException as error:
                raise self._unreachable(error) from None
        return self._cluster_id

    def topic_ids(self, *topics: Topic) -> dict[str, str]:
        return _ids(self._describe(topics))

    def offsets_at(self, topic: Topic, moment: datetime) -> dict[Partition, int]:
        """The first offset of each partition at or after a moment; its end where there is none."""
        partitions = _partitions(self._describe((topic,)))
        offsets = self._offsets(partitions, OffsetSpec.for_timestamp(int(moment.timestamp() * 1000)))
        ends = self._offsets(partitions, OffsetSpec.latest())
        return {partition_name: ends[partition_name] if offset < 0 else offset for partition_name, offset in offsets.items()}

    def extent(self, name: str) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """The first offsets of a topic's partitions, and the ends of their committed messages."""
        answers = self._admin.describe_topics(TopicCollection([name]), request_timeout=self._patience)
        partitions = _partitions([self._described(answers[name])])
        return self._offsets(partitions, OffsetSpec.earliest()), self._offsets(partitions, OffsetSpec.latest())

    def partitions(self, topics: Iterable[Topic]) -> tuple[Partition, ...]:
        """The partitions of those topics that exist."""
        answers = self._admin.describe_topics(
            TopicCollection([topic.kafka_name for topic in topics]), request_timeout=self._patience
        )
        descriptions = []
        for answer in answers.values():
            with suppress(_Missing, KafkaForbids):  # as its readers say
                descriptions.append(self._described(answer))
        return tuple(partition(pair.topic, pair.partition) for pair in _partitions(descriptions))

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The ends of the committed messages of partitions, in one request. Those of which none is known now are left out."""
        specs = {TopicPartition(*parted(partition_name)): OffsetSpec.latest() for partition_name in partitions}
        if not specs:
            return {}
        self._admin.poll(0)  # serves what the client says of single brokers, which would pile up
        answers = self._admin.list_offsets(specs, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._patience)
        ends: dict[Partition, int] = {}
        failure: KafkaException | None = None
        for pair, answer in answers.items():
            try:
                ends[partition(pair.topic, pair.partition)] = int(answer.result().offset)
            except KafkaException as error:
                failure = error
        if failure is not None and not ends and failure.args[0].name() not in _LEADERLESS:
            raise self._unreachable(failure) from None
        if failure is None:
            self._watch.clear(self._admin)
        return ends

    def starts(self, topic: Topic, state: TopicState) -> dict[Partition, int]:
        """The offsets at which a table without rows of this topic begins."""
        if isinstance(topic.start_from, datetime):
            return self.offsets_at(topic, topic.start_from)
        offsets = state.starts if topic.start_from == "earliest" else state.ends
        return {
            partition_name: offset for partition_name, offset in offsets.items() if parted(partition_name)[0] == topic.kafka_name
        }

    def read(self, spark: SparkSession, pipeline: Pipeline, range_: Range) -> DataFrame:
        return spark_reader.read(spark, pipeline, range_, self._secrets)

    def compacts(self, topic: Topic) -> bool:
        """Whether Kafka keeps only the newest message of each key; False where the user may not read the topic's configuration."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic.kafka_name)
        try:
            (config,) = self._admin.describe_configs([resource], request_timeout=self._patience).values()
            policy = config.result()["cleanup.policy"].value or ""
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return False
            raise self._unreachable(error) from None
        return "compact" in policy

    def rights(self, name: str) -> frozenset[str]:
        """The login's rights on a topic, such as `READ`; all rights where the cluster does not restrict it. Raises `NoTopic`
        without a hint if the topic does not exist, or if the login may not see it."""
        answers = self._admin.describe_topics(
            TopicCollection([name]), include_authorized_operations=True, request_timeout=self._patience
        )
        try:
            description = self._described(answers[name])
        except _Missing:
            raise NoTopic("no-topic", f"there is no topic `{name}` in the cluster `{self.cluster.name}`") from None
        return frozenset(operation.name for operation in description.authorized_operations or AclOperation)

    def may_send(self) -> bool:
        """Whether the login may use the transactional ids of senders. Kafka forgets the id tried here after some days."""
        producer = Producer({**self._settings, "transactional.id": f"{TRANSACTIONS}may-send"})
        try:
            producer.init_transactions(self._patience)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                return False
            raise self._unreachable(error) from None
        return True

    def message_size(self, starts: Iterable[tuple[Partition, int]], most: int = 100) -> float | None:
        """The mean size in bytes of up to `most` messages at these offsets; None if none arrives soon. Joins no group, commits
        nothing."""
        small = {"fetch.message.max.bytes": 65536, "queued.max.messages.kbytes": 1024}
        consumer = Consumer({**self._settings, **small, "group.id": "sluice-plan", "enable.auto.commit": False})
        sizes: list[int] = []
        deadline = time.monotonic() + _SAMPLING
        try:
            consumer.assign([TopicPartition(*parted(partition_name), offset) for partition_name, offset in starts])
            while len(sizes) < most and time.monotonic() < deadline:
                messages = consumer.consume(most - len(sizes), timeout=0.1)
                sizes += [_size(message) for message in messages if message.error() is None]
                if sizes and not messages:
                    break
        except KafkaException as error:
            raise self._unreachable(error) from None
        finally:
            consumer.close()
        return sum(sizes) / len(sizes) if sizes else None

    def _describe(self, topics: Iterable[Topic]) -> list[Any]:
        topics_by_name = {topic.kafka_name: topic for topic in topics}
        descriptions: dict[str, Any] = {}
        # A topic that was just made is unknown to a broker for a moment.
        for attempt in range(3):
            time.sleep(0.2 * attempt)
            missing_names = TopicCollection([name for name in topics_by_name if name not in descriptions])
            for name, answer in self._admin.describe_topics(missing_names, request_timeout=self._patience).items():
                with suppress(_Missing):
                    descriptions[name] = self._described(answer)
            if len(descriptions) == len(topics_by_name):
                return [descriptions[name] for name in topics_by_name]
        missing = next(topic for name, topic in topics_by_name.items() if name not in descriptions)
        raise NoTopic(
            "no-topic",
            f"there is no topic `{missing.kafka_name}` in the cluster `{self.cluster.name}` ({self.cluster.bootstrap})",
            f"`sluice topics create {missing.name}` creates it; or correct `kafka_name` of the topic at {missing.where}",
        )

    def _described(self, answer: Any) -> Any:
        try:
            return self._ask(answer.result)
        except KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                raise _Missing from None
            raise self._unreachable(error) from None

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[Partition, int]:
        specs = dict.fromkeys(partitions, spec)
        attempt = 0
        while True:
            time.sleep(0.2 * attempt)
            attempt += 1
            # READ_COMMITTED gives the last stable offset; behind it a transaction may still be open.
            try:
                answers = self._admin.list_offsets(
                    specs, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._patience
                )
                offsets = {
                    (topic_partition.topic, topic_partition.partition): int(self._ask(answer.result).offset)
                    for topic_partition, answer in answers.items()
                }
                return {partition(*pair): offset for pair, offset in sorted(offsets.items())}
            except KafkaException as error:
                if error.args[0].name() not in _LEADERLESS or attempt == _TRIES:
                    raise self._unreachable(error) from None

    def _ask(self, question: Any) -> Any:
        try:
            answer = question()
        except KafkaException as error:
            if error.args[0].name() in ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_AUTHENTICATION", "_SSL"):
                raise self._unreachable(error) from None
            raise
        self._watch.clear(self._admin)
        return answer

    def _unreachable(self, error: KafkaException) -> UnreachableError:
        return self._watch.unreachable(self.cluster, self._admin, error)


class LoginWatch:
    """The errors of a login that a client is told beside its answers, which say only that nobody answered in time."""

    def __init__(self) -> None:
        self._error: Any = None
        self.settings: dict[str, Any] = {"log_level": 0, "error_cb": self._keep}

    def _keep(self, error: Any) -> None:
        if _is_login_error(error):
            self._error = error

    def clear(self, client: Any) -> None:
        """Forgets what was said before an answer came."""
        client.poll(0)
        self._error = None

    def unreachable(self, cluster: Cluster, client: Any, error: KafkaException) -> UnreachableError:
        """The error of a question that was not answered, by its cause."""
        client.poll(0)
        return unreachable(cluster, self._error or error.args[0])


def _is_login_error(error: Any) -> bool:
    # A broker refuses a certificate by an alert behind the handshake.
    return error.name() in _LOGIN_FAILED or bool(_LOGIN_WORDS.search(error.str()))


def unreachable(cluster: Cluster, error: Any) -> UnreachableError:
    """Returns a client's error with a code that says whether to wait or to correct something."""
    text = re.sub(r"^\w+://\S+: | \(after \d+ms in state \w+\)", "", error.str())
    if _NO_TOKEN in text:
        return without_token(cluster, text.partition(_NO_TOKEN)[2].strip())
    if _is_login_error(error):
        hint = f"correct `security` of the cluster `{cluster.name}`, or its secrets"
        message = f"Kafka at {cluster.bootstrap} rejected the login: {text}"
        return UnreachableError("kafka-refused", message, hint, f"Kafka at {cluster.bootstrap}")
    if error.name().endswith("AUTHORIZATION_FAILED"):
        hint = "ask the cluster's administrator for permission to describe and read it"
        return KafkaForbids("kafka-refused", f"Kafka at {cluster.bootstrap} does not allow this: {text}", hint)
    system = "" if error.name() in _LEADERLESS else f"Kafka at {cluster.bootstrap}"
    return KafkaAway("kafka-unreachable", f"Kafka at {cluster.bootstrap} does not answer: {text}", _running(cluster), system)


def without_token(cluster: Cluster, says: str) -> UnreachableError:
    """The error of a login for which its provider gives no token. Several answers of one are written side by side."""
    endpoint = cluster.security.oauth.token_endpoint if cluster.security.oauth else ""
    says = " ".join(dict.fromkeys(re.findall(r"\{[^{}]*\}", says))) or says
    message = f"{endpoint} gives no token for Kafka at {cluster.bootstrap}: {says}"
    if _REFUSED.search(says):
        hint = f"correct `client_id`, `client_secret` or `scope` of the cluster `{cluster.name}`, or its secrets"
        return UnreachableError("kafka-refused", message, hint, endpoint)
    return KafkaAway(
        "kafka-unreachable", message, f"it is asked again; see `token_endpoint` of the cluster `{cluster.name}`", endpoint
    )


def listens(cluster: Cluster, patience: float) -> bool:
    """Whether a server listens at one of the addresses. Checked before Kafka's own client, which retries for long where the
    connection is refused."""
    addresses = [address.strip().rpartition("://")[2].rpartition(":") for address in cluster.bootstrap.split(",")]
    for host, _, port in addresses:
        try:
            socket.create_connection((host.strip("[]"), int(port)), patience / len(addresses)).close()
        except OSError:
            continue
        except ValueError:
            return True  # no port: Kafka's own client says what is wrong
        return True
    return False


def silent(cluster: Cluster) -> UnreachableError:
    system = f"Kafka at {cluster.bootstrap}"
    return KafkaAway("kafka-unreachable", f"{system} does not answer", _running(cluster), system)


def _running(cluster: Cluster) -> str:
    """The hint where no server answers: this machine's own Kafka may run at another port."""
    if remote_addresses(cluster.bootstrap):
        return f"{_ELSEWHERE} `{cluster.name}`"
    own_kafka = process.running(home() / "services" / "kafka")
    if own_kafka is None or own_kafka.address in cluster.bootstrap:
        return _RUNNING
    message = f"Kafka runs on this machine at {own_kafka.address}, and the cluster `{cluster.name}` says {cluster.bootstrap}"
    return f"{message}: correct its `bootstrap`"


def refuse_silent(cluster: Cluster) -> None:
    """Raises within seconds if no server of the cluster listens."""
    if not listens(cluster, CONNECTING):
        raise silent(cluster)


class _Missing(Exception):
    """Kafka does not know the topic."""


def _size(message: Any) -> int:
    headers = message.headers() or []
    return len(message.value() or b"") + len(message.key() or b"") + sum(len(name) + len(value or b"") for name, value in headers)


def _partitions(descriptions: Iterable[Any]) -> list[TopicPartition]:
    return [
        TopicPartition(description.name, part.id)
        for description in descriptions
        for part in sorted(description.partitions, key=lambda info: info.id)
    ]


def _ids(descriptions: Iterable[Any]) -> dict[str, str]:
    return {description.name: str(description.topic_id) for description in descriptions}
