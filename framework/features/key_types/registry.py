"""The login to the schema registry. Registries have no API for their users: a person makes each key, and Sluice tries it and uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.features.key_types import ByHand, KeyType, KeyWork, Login, Opened, of_cluster
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
        return of_cluster(secret, where, draft, _login, unused)

    def by_hand(self, keys: Keys) -> bool:
        return True

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        raise ByHand(
            "made-by-hand", "a key of a schema registry is made where its users are",
            f"at Confluent: `confluent api-key create --resource <registry> --service-account <account>`; "
            f"then `sluice keys new {work.keys.name} --by-hand` asks for it",
        )  # fmt: skip

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        assert work.keys.cluster is not None
        name, password = (values[secret] for secret in work.keys.secrets)
        Registry(work.keys.cluster, work.secrets, other_login=(name, password)).subjects(1)  # any request that needs a login

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        name = self.known_as(values)
        return (f"delete the key {name} where it was made; at Confluent: `confluent api-key delete {name}`",)

    def known_as(self, values: Mapping[str, str]) -> str:
        return next(iter(values.values()))


def _login(cluster: Cluster) -> Login | None:
    return (cluster.registry_auth.username, cluster.registry_auth.password) if cluster.registry_auth else None


TYPE = RegistryLogin()
