"""The login to Kafka. By SCRAM, each key is a user of its own, with the rights of the one before; API keys are made by hand."""

from __future__ import annotations

import re
import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.features.key_types import ByHand, KeyType, KeyWork, Opened, of_cluster
from framework.language.options import OptionGroup, option
from framework.plan import Cluster, SecretRef
from framework.systems.keyring import StoredKey

_BYTES = 32  # random ones of a password


@dataclass(frozen=True)
class Admin(OptionGroup):
    """A login that may make users."""

    username: str | SecretRef = option("The login's name.", example='"${secret:admin_key}"', aka=["user"])
    password: SecretRef = option("The secret with the password.", example='"${secret:admin_secret}"')


@dataclass(frozen=True)
class Options(OptionGroup):
    """The login of the cluster."""

    admin: Admin | None = option(
        "The login that makes and deletes users, at the same addresses; default: the key itself, if it may.", default=None,
        example='{username: admin, password: "${secret:admin_secret}"}',
    )  # fmt: skip


class KafkaLogin(KeyType):
    does = "replaces the login of the cluster's `security`"

    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        hint = f'write `username: "${{secret:{secret}_key}}"` and `password: "${{secret:{secret}_secret}}"` under `security` of the cluster'
        unused = f"no cluster logs in to Kafka by secrets of `{secret}`", hint
        return of_cluster(secret, where, draft, lambda cluster: (cluster.security.username, cluster.security.password), unused)

    def make(self, work: KeyWork, number: int, current: StoredKey | None) -> Mapping[str, str]:
        name, password = work.keys.secrets
        if not _by_scram(_cluster(work)):
            raise ByHand(
                "made-by-hand", f"a key of `mechanism: {_cluster(work).security.mechanism}` is made where the cluster's users are",
                f"at Confluent: `confluent api-key create --resource <cluster> --service-account <account>`; "
                f"then `sluice keys new {work.keys.name} --by-hand` asks for it",
            )  # fmt: skip
        if current is None:
            raise ByHand(
                "no-key", f"there is no key of {work.keys.name} yet", f"`sluice keys new {work.keys.name} --by-hand` asks for it"
            )
        base = re.sub(r"-\d+$", "", current.values[name])
        return {name: f"{base}-{number}", password: random.token_urlsafe(_BYTES)}

    def put(self, work: KeyWork, number: int, values: Mapping[str, str], current: StoredKey | None) -> Sequence[str]:
        from framework.core.kafka.users import Users

        cluster = _cluster(work)
        if _by_scram(cluster):
            name, password = (values[secret] for secret in work.keys.secrets)
            like = current.values[work.keys.secrets[0]] if current else None
            Users(cluster, self._administrator(work)).make(name, password, like)
        return ()

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        from framework.core.kafka.cluster import client_settings, refuse_silent
        from framework.core.kafka.users import wait_for_login

        cluster = _cluster(work)
        refuse_silent(cluster)
        settings = client_settings(replace(cluster, security=replace(cluster.security, username="", password=None)), work.secrets)
        name, password = (values[secret] for secret in work.keys.secrets)
        wait_for_login(cluster, {**settings, "sasl.username": name, "sasl.password": password})

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str]) -> Sequence[str]:
        from framework.core.kafka.users import Users

        cluster, name = _cluster(work), self.known_as(values)
        if not _by_scram(cluster):
            return (f"delete the key {name} where it was made; at Confluent: `confluent api-key delete {name}`",)
        Users(cluster, self._administrator(work)).delete(name)
        return ()

    def known_as(self, values: Mapping[str, str]) -> str:
        return next(iter(values.values()))

    def _administrator(self, work: KeyWork) -> Mapping[str, Any]:
        from framework.core.kafka.cluster import client_settings, refuse_silent

        cluster, admin = _cluster(work), work.keys.options.admin
        refuse_silent(cluster)
        security = replace(cluster.security, username=admin.username, password=admin.password) if admin else cluster.security
        return client_settings(replace(cluster, security=security), work.secrets)


def _cluster(work: KeyWork) -> Cluster:
    assert work.keys.cluster is not None
    return work.keys.cluster


def _by_scram(cluster: Cluster) -> bool:
    return (cluster.security.mechanism or "").startswith("SCRAM")


TYPE = KafkaLogin()
