"""A connector's settings for a cluster: the logins of its clients, and rights on topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framework.core.kafka import acls, login
from framework.operations.access.asked import without_secret
from framework.operations.access.steps import SHELL, ScriptStep, shared
from framework.plan import Cluster, SecretRef

_CLIENTS = ("consumer", "producer", "admin")  # the last two write the topic of messages that were not loaded


def logins(cluster: Cluster, secrets: str) -> Mapping[str, str]:
    """The settings of each client, with secrets and certificates as names in a file that Connect reads."""
    settings = login.referring(cluster, lambda name, part: _value(secrets, name, part))
    return {f"{client}.override.{key}": value for client in _CLIENTS for key, value in settings.items()}


def registry(cluster: Cluster, secrets: str) -> Mapping[str, str]:
    """The settings of a converter that asks the registry."""
    settings = {"value.converter.schema.registry.url": cluster.registry or ""}
    if cluster.registry_auth:
        settings["value.converter.basic.auth.credentials.source"] = "USER_INFO"
        user, password = in_file(secrets, "registry_user"), in_file(secrets, "registry_password")
        settings["value.converter.basic.auth.user.info"] = f"{user}:{password}"
    return settings


def _value(secrets: str, name: str, part: str | SecretRef) -> str:
    return part if name == "username" and isinstance(part, str) else in_file(secrets, _line_name(name))


def _line_name(name: str) -> str:
    return "kafka_user" if name == "username" else f"kafka_{name}"


def in_file(file: str, name: str) -> str:
    """A reference from a connector's configuration to a value in a file."""
    return f"${{file:{file}:{name}}}"


def secret_lines(cluster: Cluster) -> Iterator[str]:
    """The lines with logins for the file of secrets."""
    for name, part in login.parts(cluster.security).items():
        if isinstance(part, SecretRef):
            yield f"{_line_name(name)}={without_secret(part)}"
        elif name != "username":
            yield f"{_line_name(name)}=<what is in {part}, in one line, with \\n where lines end>"
    if cluster.registry_auth:
        yield f"registry_user={without_secret(cluster.registry_auth.username)}"
        yield f"registry_password={without_secret(cluster.registry_auth.password)}"


def rights(cluster: Cluster, connector: str, topic: str, dead_topic: str) -> Iterator[ScriptStep]:
    """Steps that let the connector use its topics and its group, in a Kafka with ACLs."""
    if not cluster.security.logs_in:
        return
    principal = acls.principal(cluster)
    for kind, name, operations in (
        ("topic", topic, acls.READING), ("group", f"connect-{connector}", ("READ",)), ("topic", dead_topic, ("WRITE", "DESCRIBE")),
    ):  # fmt: skip
        yield shared(
            SHELL, f"In a Kafka with ACLs: let {principal} use the {kind} {name}.",
            acls.command(cluster, "--add", principal, name, operations, kind),
            acls.command(cluster, "--remove", principal, name, operations, kind) + " --force",
        )  # fmt: skip
