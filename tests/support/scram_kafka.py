"""A Kafka whose users log in by SCRAM. Without a login, on another port, everybody is the administrator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType

from framework.core.kafka.users import Users, of_user
from framework.plan import Cluster
from framework.plan.topic import Security
from tests.support.locked_kafka import LockedKafka, with_logins

_SCRAM = """
sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
_READING = (
    (ResourceType.TOPIC, "*", "READ"),
    (ResourceType.TOPIC, "*", "DESCRIBE"),
    (ResourceType.TOPIC, "*", "DESCRIBE_CONFIGS"),
)
_WRITING = (
    (ResourceType.TOPIC, "*", "WRITE"), (ResourceType.TOPIC, "*", "CREATE"),
    (ResourceType.TRANSACTIONAL_ID, "*", "WRITE"), (ResourceType.TRANSACTIONAL_ID, "*", "DESCRIBE"),
)  # fmt: skip
_CLUSTER = (ResourceType.BROKER, "kafka-cluster")  # librdkafka's name for the cluster
_MANAGING = ((*_CLUSTER, "ALTER"), (*_CLUSTER, "DESCRIBE"))


@dataclass(frozen=True)
class ScramKafka(LockedKafka):
    """A broker with users that come and go."""

    def add_user(self, name: str, password: str, manages: bool = False, writes: bool = False) -> None:
        """Adds a user that may read all topics, write them where it `writes`, and make users where it `manages`."""
        self._users.make(name, password, None)
        bindings = [
            AclBinding(
                kind, thing, ResourcePatternType.LITERAL, f"User:{name}", "*", AclOperation[operation], AclPermissionType.ALLOW
            )
            for kind, thing, operation in (*_READING, *(_WRITING if writes else ()), *(_MANAGING if manages else ()))
        ]
        admin = AdminClient({"bootstrap.servers": self.open})
        for answer in admin.create_acls(bindings).values():
            answer.result()

    def set_password(self, name: str, password: str) -> None:
        self._users.make(name, password, None)

    def forbid(self, name: str) -> None:
        """Takes all rights of a user."""
        admin = AdminClient({"bootstrap.servers": self.open})
        for answer in admin.delete_acls([of_user(f"User:{name}")]).values():
            answer.result()

    def delete_user(self, name: str) -> None:
        self._users.delete(name)

    def users(self) -> set[str]:
        admin = AdminClient({"bootstrap.servers": self.open})
        answer: Any = admin.describe_user_scram_credentials()
        return set(answer.result())

    @property
    def _users(self) -> Users:
        security = Security(mechanism="SCRAM-SHA-256")
        return Users(Cluster(name="open", bootstrap=self.open, security=security), {"bootstrap.servers": self.open})


@contextmanager
def scram_kafka(home: Path) -> Iterator[ScramKafka]:
    with with_logins(home, _SCRAM) as (open_address, locked_address):
        yield ScramKafka(open_address, locked_address)
