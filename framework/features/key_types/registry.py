"""The login to the schema registry. Registries have no API for their users: a person makes each key, and Sluice tries it and uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.features.key_types import KeyType, KeyWork, Opened, deleted_by_hand, made_by_hand, of_cluster, registry_login
from framework.language.options import OptionGroup
from framework.messages.registry.client import Registry
from framework.plan import Cluster
from framework.plan.keys import Keys
from framework.systems.keyring import StoredKey


@dataclass(frozen=True)
class Options(OptionGroup):
    """The login of the registry."""


class RegistryLogin(KeyType):
    does = "replaces the login of the cluster's `registry_auth`"

    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        hint = f'write `registry_auth: {{username: "${{secret:{secret}_key}}", password: "${{secret:{secret}_secret}}"}}` in the cluster'
        unused = f"no cluster logs in to a registry by secrets of `{secret}`", hint
        return of_cluster(secret, where, draft, registry_login, unused)

    def by_hand(self, keys: Keys) -> bool:
        return True

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        raise made_by_hand(work.keys, "a key of a schema registry is made where its users are", "registry")

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        assert isinstance(work.keys.opens, Cluster)
        name, password = (values[secret] for secret in work.keys.secrets)
        Registry(work.keys.opens, work.secrets, other_login=(name, password)).subjects(1)  # any request that needs a login

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        return (deleted_by_hand(self.known_as(values)),)


TYPE = RegistryLogin()
