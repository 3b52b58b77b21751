"""Types of keys that can be replaced, one file each. The file's name is what `of` says in a document `keys`.

A type's file has `Options`, its options in the document; and `TYPE`, its class.

*Guarantee* A key is kept in the store of secrets before a system takes it, and the system no longer takes it before the store forgets it:
after a kill, the same step continues. `make`, `put` and `remove` can be repeated.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, TypeAlias

from framework.base.errors import Problem, SluiceError, Where
from framework.documents.draft import Draft
from framework.plan import Cluster, SecretRef, SecretStore
from framework.plan.keys import Keys
from framework.systems.keyring import StoredKey

Login: TypeAlias = tuple[str | SecretRef | None, SecretRef | None]
"""A name and a password."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The lock of some keys: the names of the secrets with the parts of the current key, and what takes it, as `Keys.opens`."""

    secrets: tuple[str, ...]
    opens: Any = None


@dataclass(frozen=True, kw_only=True)
class KeyWork:
    """Keys of the specs, and where their values are."""

    keys: Keys
    secrets: SecretStore


class KeyType(ABC):
    """A type of keys. Its methods take a key's values by the names of their secrets, in the order of `Keys.secrets`."""

    does: ClassVar[str]  # completes "`kafka` …" in the help of `of`
    needs_person: ClassVar[bool] = False  # whether a new key is used only when a person says that it is in its place
    keeps_former: ClassVar[bool] = False  # whether former keys stay until a person retires them

    @abstractmethod
    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        """The lock of the keys that are called `secret`; None if a problem was reported."""

    def by_hand(self, keys: Keys) -> bool:
        """Whether only a person can make a key, and make it invalid."""
        return False

    def slots(self, keys: Keys) -> int | None:
        """How many keys can be valid at a time; None: any number."""
        return None

    @abstractmethod
    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        """The values of a new key, beside those that are stored. Raises an error where only a person can make one."""

    def put(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        """Makes the key valid where it is used. Returns what is left to a person, as lines to print."""
        return ()

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:  # noqa: B027 - some cannot be tried
        """Raises an error if the key is not taken where it is used."""

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        """Makes a key invalid. Returns what is left to a person, as lines to print."""
        return ()

    def needed_for(self, work: KeyWork, key: StoredKey, stored: Sequence[StoredKey]) -> Sequence[str]:
        """The things that cannot be read or done any more without the key, in words."""
        return ()

    def known_as(self, values: Mapping[str, str]) -> str:
        """The name of a key where it is used: nothing secret. Of a login, it is its first part."""
        return next(iter(values.values()))


def made_by_hand(keys: Keys, what: str, confluent_resource: str | None = None) -> SluiceError:
    """The error that only a person can make the next key."""
    command = f"`confluent api-key create --resource <{confluent_resource}> --service-account <account>`"
    how = f"at Confluent: {command}; then" if confluent_resource else "make one, then"
    return SluiceError("made-by-hand", what, f"{how} `sluice keys new {keys.name} --by-hand` asks for it")


def deleted_by_hand(name: str, at_confluent: bool = True) -> str:
    return (
        f"delete the key {name} where it was made{f'; at Confluent: `confluent api-key delete {name}`' if at_confluent else ''}"
    )


def free_name(base: str, number: int, taken_names: Set[str]) -> str:
    """The first name `base-N` from a number on that nobody has."""
    return next(name for place in count(number) if (name := f"{base}-{place}") not in taken_names)


def of_cluster(
    secret: str, where: Where, draft: Draft, login: Callable[[Cluster], Login | None], unused: tuple[str, str]
) -> Opened | None:
    """The cluster that logs in by the secrets of this name. `unused`: the message and the hint of the problem if there is none."""
    matches = [(cluster, names) for cluster in draft.clusters.values() if (names := login_secrets(secret, login(cluster)))]
    if not matches:
        draft.problems.append(Problem(where, "unused-keys", *unused))
        return None
    (cluster, names), *_ = matches
    logins = [each for other in draft.clusters.values() for each in (kafka_login(other), registry_login(other)) if each]
    users = [each for each in logins if {value.name for value in each if isinstance(value, SecretRef)} & set(names)]
    if len(users) > 1:
        message = f"{len(users)} logins use the secrets {' and '.join(names)}, and a new key would be made for one of them"
        draft.problems.append(Problem(where, "shared-keys", message, "give each login secrets of its own"))
        return None
    return Opened(secrets=names, opens=cluster)


def kafka_login(cluster: Cluster) -> Login:
    return cluster.security.username, cluster.security.password


def registry_login(cluster: Cluster) -> Login | None:
    return (cluster.registry_auth.username, cluster.registry_auth.password) if cluster.registry_auth else None


def login_secrets(secret: str, login: Login | None) -> tuple[str, str] | None:
    """The names of a login's two secrets, if both belong to the secret of this name: `kafka_key` and `kafka.password` do to `kafka`,
    `kafka_dev_key` does to `kafka_dev` alone."""
    names = [value.name for value in login or () if isinstance(value, SecretRef)]
    of_secret = [name for name in names if re.fullmatch(rf"{re.escape(secret)}[_.][A-Za-z0-9]+", name)]
    return (of_secret[0], of_secret[1]) if len(of_secret) == 2 and of_secret[0] != of_secret[1] else None
