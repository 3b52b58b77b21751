"""A Kafka that lets one user do only what an administrator allows. Without a login, on another port, everybody is the administrator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from framework.core.kafka.users import of_user
from framework.machine.services import kafka, process
from framework.machine.services.ports import free_port

USER, PASSWORD = "ingest", "only-in-this-test"
CLUSTER = f"""\
cluster: main
bootstrap: {{kafka}}
security: {{{{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: {USER}, password: "${{{{secret:kafka_password}}}}"}}}}
"""
"""The cluster's document, with `kafka` to fill in."""
_LOCKED = """
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller},{protocol}://127.0.0.1:{locked}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker},{protocol}://127.0.0.1:{locked}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocol}:{protocol}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
_PLAIN = """
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
required user_{user}="{password}";
"""


_KINDS = {"--topic": ResourceType.TOPIC, "--transactional-id": ResourceType.TRANSACTIONAL_ID}


@dataclass(frozen=True)
class LockedKafka:
    open: str  # address without a login
    locked: str

    def allow(self, command: list[str]) -> None:
        """Does the work of this command of `kafka-acls.sh`, as an administrator: the script is not among the jars."""
        options = [*pairwise(command[1:])]
        (principal,) = (value for name, value in options if name == "--allow-principal")
        ((kind, resource),) = ((_KINDS[name], value) for name, value in options if name in _KINDS)
        pattern = ResourcePatternType.PREFIXED if "prefixed" in command else ResourcePatternType.LITERAL
        acls = [
            AclBinding(*(kind, resource, pattern, principal, "*"), *(AclOperation[value.upper()], AclPermissionType.ALLOW))
            for name, value in options
            if name == "--operation"
        ]
        assert acls
        admin = AdminClient({"bootstrap.servers": self.open})
        apply: Any = admin.create_acls if "--add" in command else admin.delete_acls
        bindings = acls if "--add" in command else [_filter(acl) for acl in acls]
        for future in apply(bindings).values():
            future.result()

    def rights(self, user: str = USER) -> set[tuple[str, str]]:
        """A user's current rights, by topic."""
        admin = AdminClient({"bootstrap.servers": self.open})
        allowed_bindings: Any = admin.describe_acls(of_user(f"User:{user}")).result()
        return {(binding.name, binding.operation.name) for binding in allowed_bindings}


def _filter(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        *(acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
    )


@contextmanager
def with_logins(
    home: Path, settings: str, protocol: str = "SASL_PLAINTEXT", java_options: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """A Kafka with these settings for logins; yields the address without a login, and that with one."""
    home.mkdir(parents=True, exist_ok=True)
    locked_port = free_port()

    def prepare(folder: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
        java, *rest = kafka.SERVICE.prepare(folder, ports)
        places = _LOCKED.format(broker=ports[0], controller=ports[1], locked=locked_port, protocol=protocol)
        with (folder / "server.properties").open("a", encoding="utf-8") as file:
            file.write(places + settings)
        return (java, *java_options, *rest)

    with process.private_service(replace(kafka.SERVICE, prepare=prepare), home, None) as broker:
        yield broker.address, f"127.0.0.1:{locked_port}"


@contextmanager
def locked_kafka(home: Path) -> Iterator[LockedKafka]:
    with with_logins(home, _PLAIN.format(user=USER, password=PASSWORD)) as (open_address, locked_address):
        yield LockedKafka(open_address, locked_address)
