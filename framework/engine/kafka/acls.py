"""What a login may do with topics, and the command with which an administrator allows what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from framework.model import Cluster, SecretStore
from framework.secrets import reveal

READING = ("READ", "DESCRIBE")
WRITING = ("WRITE", "DESCRIBE")
ANYBODY = "User:NAME"  # the login is a certificate, or nothing: the administrator knows its name


def allow(cluster: Cluster, secrets: SecretStore, topic: str, operations: Iterable[str]) -> str:
    """For the login of the cluster. Sluice commits no offsets to Kafka, so no group needs a right."""
    name = cluster.security.username
    return command(cluster, "--add", f"User:{reveal(name, secrets)}" if name is not None else ANYBODY, topic, operations)


def command(cluster: Cluster, does: str, principal: str, topic: str, operations: Iterable[str]) -> str:
    """Of Kafka's own tools."""
    asked = (part for each in operations for part in ("--operation", each.capitalize()))
    return shlex.join([*_tool(cluster), does, "--allow-principal", principal, *asked, "--topic", topic])


def listing(cluster: Cluster, topic: str) -> str:
    return shlex.join([*_tool(cluster), "--list", "--topic", topic])


def _tool(cluster: Cluster) -> tuple[str, ...]:
    return "kafka-acls.sh", "--bootstrap-server", cluster.bootstrap
