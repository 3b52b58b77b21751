"""A Kafka cluster and its schema registry, with their logins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework import plan as model
from framework.base.errors import Problem
from framework.base.hosts import is_open, remote_addresses
from framework.documents.draft import Draft
from framework.documents.security import Security
from framework.language.kind import Kind
from framework.language.options import Document, OptionGroup, option
from framework.language.scalars import Addresses, Url
from framework.plan.secret import SecretRef

EXAMPLE = """\
cluster: main
bootstrap: kafka1.example.com:9092,kafka2.example.com:9092
security:
  protocol: SASL_SSL
  mechanism: PLAIN
  username: ${secret:kafka_key}
  password: ${secret:kafka_secret}
registry: https://registry.example.com
registry_auth: {username: "${secret:registry_key}", password: "${secret:registry_secret}"}
"""


@dataclass(frozen=True)
class RegistryAuth(OptionGroup):
    """The login for the schema registry."""

    username: str | SecretRef = option("The login's name.", example='"${secret:registry_key}"', aka=["user", "key"])
    password: SecretRef = option("The secret with the password.", example='"${secret:registry_secret}"', aka=["secret"])


@dataclass(frozen=True)
class Cluster(Document):
    """A Kafka cluster."""

    bootstrap: Addresses = option(
        "The addresses of the cluster's brokers; one that answers is enough.", example="127.0.0.1:19092",
        aka=["brokers", "servers", "hosts", "url", "host"],
    )  # fmt: skip
    security: Security | None = option("Login and encryption; default: neither.", default=None, aka=["sasl", "auth"])
    registry: Url | None = option(
        "The address of the schema registry: Confluent's, or one with a compatible API.", default=None,
        example="http://127.0.0.1:18081/apis/ccompat/v7", aka=["schema_registry", "schema_registry_url", "registry_url"],
    )  # fmt: skip
    registry_auth: RegistryAuth | None = option(
        "The login for the schema registry; default: no login.", default=None, aka=["schema_registry_auth"]
    )
    unencrypted_login: bool = option(
        "Whether the logins above may be sent to other machines without encryption, by `SASL_PLAINTEXT` or `http://`.", default=False,
        example="true",
    )  # fmt: skip

    def servers(self) -> Iterable[str | None]:
        of_login = self.security.servers() if self.security else ()
        return (*map(str.strip, self.bootstrap.split(",")), self.registry, *of_login)

    def problems(self) -> Iterable[Problem]:
        if self.registry_auth and self.registry is None and "registry" not in self.gaps:
            hint = "add `registry:` with the registry's address, or remove it"
            yield Problem(self.key_place("registry_auth"), "unused-key", "`registry_auth` has no effect without `registry`", hint)
        if not self.unencrypted_login:
            yield from self._in_clear()

    def _in_clear(self) -> Iterable[Problem]:
        """Problems with logins that others on the network could read."""
        allow = "if that network is safe, allow it with `unencrypted_login: true`"
        if self.security and self.security.protocol == "SASL_PLAINTEXT" and (hosts := remote_addresses(self.bootstrap)):
            message = f"the login would be sent to {', '.join(hosts)} without encryption"
            where = self.security.place("protocol")
            yield Problem(where, "unencrypted-login", message, f"write `protocol: SASL_SSL`; {allow}")
        if self.security and is_open(self.security.token_endpoint):
            message = f"the client's secret would be sent to {self.security.token_endpoint} without encryption"
            where = self.security.place("token_endpoint")
            yield Problem(where, "unencrypted-login", message, f"write `https://…`; {allow}")
        if self.registry_auth and is_open(self.registry):
            message = f"the login would be sent to {self.registry} without encryption"
            yield Problem(self.place("registry"), "unencrypted-login", message, f"write `https://…`; {allow}")


def plan_clusters(draft: Draft, documents: tuple[Cluster, ...]) -> None:
    draft.clusters = {cluster.name: _planned(cluster) for cluster in documents}


def _planned(cluster: Cluster) -> model.Cluster:
    login_spec, auth = cluster.security, cluster.registry_auth
    security = login_spec.planned() if login_spec else model.Security()
    login = model.Login(auth.username, auth.password) if auth else None
    return model.Cluster(
        name=cluster.name, bootstrap=cluster.bootstrap, security=security, registry=cluster.registry, registry_auth=login
    )


KIND = Kind(Cluster, plan_clusters)
