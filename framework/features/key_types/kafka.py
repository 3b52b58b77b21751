"""The login to Kafka. By SCRAM, each key is a user of its own, with the rights of the one before; API keys are made by hand."""

from __future__ import annotations

import re
import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from framework.base.errors import SluiceError, Where
from framework.documents.draft import Draft
from framework.features.key_types import (
    KeyType,
    KeyWork,
    Opened,
    deleted_by_hand,
    free_name,
    kafka_login,
    made_by_hand,
    of_cluster,
)
from framework.language.options import OptionGroup, option
from framework.plan import Cluster, SecretRef
from framework.plan.keys import Keys
from framework.systems import keyring
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
        hint = (
            f'write `username: "${{secret:{secret}_key}}"` and `password: "${{secret:{secret}_secret}}"` under `security` of the cluster; '
            "by OAUTHBEARER, `client_id` and `client_secret`"
        )
        unused = f"no cluster logs in to Kafka by secrets of `{secret}`", hint
        return of_cluster(secret, where, draft, kafka_login, unused)

    def by_hand(self, keys: Keys) -> bool:
        return not (_cluster(keys).security.mechanism or "").startswith("SCRAM")

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        from framework.core.kafka.users import Users

        name, password = work.keys.secrets
        if self.by_hand(work.keys):
            mechanism = _cluster(work.keys).security.mechanism
            raise made_by_hand(
                work.keys, f"a key of `mechanism: {mechanism}` is made where the cluster's users are", _resource(work.keys)
            )
        acting = keyring.acting(stored)
        if acting is None:
            raise SluiceError(
                "no-key", f"there is no key of {work.keys.name} yet", f"`sluice keys new {work.keys.name} --by-hand` asks for it"
            )
        is_ours = acting.number is not None and acting.number > 1
        base = re.sub(r"-\d+$", "", acting.values[name]) if is_ours else acting.values[name]
        names = Users(_cluster(work.keys), self._administrator(work, acting)).names() | {key.values[name] for key in stored}
        return {name: free_name(base, number, names), password: random.token_urlsafe(_BYTES)}

    def put(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        from framework.core.kafka.users import Users

        cluster, acting = _cluster(work.keys), keyring.acting(stored)
        if not self.by_hand(work.keys) and acting is not None:
            name, password = (values[secret] for secret in work.keys.secrets)
            Users(cluster, self._administrator(work, acting)).make(name, password, acting.values[work.keys.secrets[0]])
        return ()

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        from framework.core.kafka.cluster import refuse_silent
        from framework.core.kafka.users import wait_for_login

        cluster = _cluster(work.keys)
        refuse_silent(cluster)
        wait_for_login(cluster, _with_login(cluster, work, values))

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        from framework.core.kafka.users import Users

        name = self.known_as(values)
        if self.by_hand(work.keys):
            return (deleted_by_hand(name, at_confluent=_resource(work.keys) is not None),)
        Users(_cluster(work.keys), self._administrator(work, keyring.acting(stored))).delete(name)
        return ()

    def _administrator(self, work: KeyWork, acting: StoredKey | None) -> Mapping[str, Any]:
        """The settings of an administrator's login: that of `admin`, or of the key itself."""
        from framework.core.kafka.cluster import refuse_silent
        from framework.core.kafka.login import client_settings

        cluster, admin = _cluster(work.keys), work.keys.options.admin
        refuse_silent(cluster)
        if admin is None and acting is not None:
            return _with_login(cluster, work, acting.values)
        if admin is None:
            hint = f"`sluice keys new {work.keys.name} --by-hand` asks for one, or name an `admin` in the document"
            raise SluiceError("no-key", f"there is no other key of {work.keys.name} to log in with", hint)
        security = replace(cluster.security, username=admin.username, password=admin.password)
        return client_settings(replace(cluster, security=security), work.secrets)


def _with_login(cluster: Cluster, work: KeyWork, values: Mapping[str, str]) -> Mapping[str, Any]:
    """The settings of the login of one key."""
    from framework.core.kafka.login import settings_with

    name, password = (values[secret] for secret in work.keys.secrets)
    return settings_with(cluster, work.secrets, name, password)


def _resource(keys: Keys) -> str | None:
    """The resource that keys of Confluent are made for; None for a client of a provider of tokens."""
    return None if _cluster(keys).security.oauth else "cluster"


def _cluster(keys: Keys) -> Cluster:
    assert isinstance(keys.opens, Cluster)
    return keys.opens


TYPE = KafkaLogin()
