"""A login's rights on topics, and the command with which an administrator grants the missing ones. Sluice commits no offsets to Kafka, so
no group needs a right."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from framework.plan import Cluster, Follower

READING: tuple[str, ...] = ("READ", "DESCRIBE")
_WRITING: tuple[str, ...] = ("WRITE", "DESCRIBE", "CREATE")  # a topic that is missing is created
SENDING: tuple[str, ...] = ("WRITE", "DESCRIBE")  # on the transactional ids by which senders take turns
TRANSACTIONS = "sluice-"  # the prefix of these ids
ADMIN = "admin.properties"  # a file with the login of an administrator
ANYBODY = "User:<login>"  # the administrator knows the name of a login by certificate, token or key


def writing(follower: Follower) -> tuple[str, ...]:
    """The rights on the topic that a follower sends to."""
    return (*_WRITING, "READ") if follower.reads_back else _WRITING


def principal(cluster: Cluster) -> str:
    """The cluster's login for Kafka's tools; a placeholder if the spec has no name, or has it as a secret."""
    name = cluster.security.username
    return f"User:{name}" if isinstance(name, str) and cluster.security.oauth is None else ANYBODY


def command(cluster: Cluster, action: str, principal: str, name: str, operations: Iterable[str], resource: str = "topic") -> str:
    """The command of Kafka's own tool, for a topic or a group of this name, or for all transactional ids that begin with it."""
    flags = (part for operation in operations for part in ("--operation", operation.capitalize()))
    pattern = ("--resource-pattern-type", "prefixed") if resource == "transactional-id" else ()
    return shlex.join([*tool(cluster), action, "--allow-principal", principal, *flags, f"--{resource}", name, *pattern])


def sending(cluster: Cluster, action: str, principal: str) -> str:
    """The command for the transactional ids of senders."""
    return command(cluster, action, principal, TRANSACTIONS, SENDING, "transactional-id")


def listing(cluster: Cluster, topic: str) -> str:
    return shlex.join([*tool(cluster), "--list", "--topic", topic])


def tool(cluster: Cluster, name: str = "kafka-acls.sh", login: str = "--command-config") -> tuple[str, ...]:
    """The beginning of a command of Kafka's own tools, with an administrator's login if the cluster needs one."""
    needs_login = cluster.security.protocol != "PLAINTEXT"
    return name, "--bootstrap-server", cluster.bootstrap, *((login, ADMIN) if needs_login else ())
