"""Errors of a login that a client of Kafka is told: they count until an answer comes, and say which system is to blame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from framework.base.errors import KafkaAway, UnreachableError
from framework.core.kafka.cluster import LoginWatch
from framework.plan import Cluster, OAuth, Security

ENDPOINT = "https://login.example.com/token"
CLUSTER = Cluster(name="main", bootstrap="kafka.example.com:9093", security=Security(oauth=OAuth(ENDPOINT)))
SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "Failed while waiting for controller: Local: Timed out"))
NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: "


class Client:
    """A client that tells what it was given at the next poll, as librdkafka's do."""

    def __init__(self, watch: LoginWatch) -> None:
        self.told: list[KafkaError] = []
        self._tell: Callable[[Any], None] = watch.settings["error_cb"]

    def poll(self, _seconds: float) -> None:
        while self.told:
            self._tell(self.told.pop(0))


@pytest.fixture
def watch() -> LoginWatch:
    return LoginWatch()


@pytest.mark.parametrize(
    ("code", "text", "kind", "says"),
    [
        ("_AUTHENTICATION", f'{NO_TOKEN}{{"error": "invalid_client"}}', UnreachableError, f"{ENDPOINT} gives no token"),
        ("_AUTHENTICATION", f"{NO_TOKEN}Failed to decode JWT payload", UnreachableError, "decode JWT"),
        ("_AUTHENTICATION", f'{NO_TOKEN}{{"e": 1}}{{"e": 1}}', KafkaAway, 'gives no token for Kafka at kafka.example.com:9093: {"e": 1}'),
        ("_TRANSPORT", "Receive failed: tlsv13 alert certificate required: SSL alert number 116", UnreachableError, "rejected the login"),
        ("_TRANSPORT", "Receive failed: tlsv1 alert unknown ca: SSL alert number 48", UnreachableError, "rejected the login"),
        ("_TRANSPORT", "Receive failed: ssl/tls alert bad certificate: SSL alert number 42", UnreachableError, "rejected the login"),
        ("_TRANSPORT", "Connection refused", KafkaAway, "does not answer: Failed while waiting"),
    ],
)  # fmt: skip
def test_the_cause_of_a_silence_is_what_was_told(
    code: str, text: str, kind: type[UnreachableError], says: str, watch: LoginWatch
) -> None:
    client = Client(watch)
    client.told.append(KafkaError(getattr(KafkaError, code), text))
    error = watch.unreachable(CLUSTER, client, SILENT)
    assert type(error) is kind and says in error.message


def test_what_was_told_before_an_answer_is_over(watch: LoginWatch) -> None:
    client = Client(watch)
    client.told.append(KafkaError(KafkaError._AUTHENTICATION, f'{NO_TOKEN}{{"error": "invalid_client"}}'))
    watch.clear(client)
    error = watch.unreachable(CLUSTER, client, SILENT)
    assert error.code == "kafka-unreachable" and "does not answer" in error.message
