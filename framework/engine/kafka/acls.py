"""What a login may do with topics, and the command with which an administrator allows what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from framework.model import Cluster, SecretStore
from framework.secrets import reveal

READING = ("READ", "DESCRIBE")
WRITING = ("WRITE", "DESCRIBE")
_ANYBODY = "User:NAME"  # the login is a certificate, or nothing: the administrator knows its name


def allow(cluster: Cluster, secrets: SecretStore, topic: str, operations: Iterable[str]) -> str:
    """A command of Kafka's own tools. Sluice commits no offsets to Kafka, so no group needs a right."""
    name = cluster.security.username
    principal = f"User:{reveal(name, secrets)}" if name is not None else _ANYBODY
    asked = (part for each in operations for part in ("--operation", each.capitalize()))
    command = ["kafka-acls.sh", "--bootstrap-server", cluster.bootstrap, "--add", "--allow-principal", principal, *asked]
    return shlex.join([*command, "--topic", topic])
