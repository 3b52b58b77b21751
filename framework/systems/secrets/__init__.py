"""Values of secrets, looked up when they are used and never stored. The stores are one file each: `store: file` of a spec is `file.py`.

A store's file has `Options`, the options of its document; and `STORE`, its class, whose objects look values up.

*Guarantee* A spec can name neither just any environment variable, nor a file outside the project.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from framework.base.components import components_in
from framework.base.errors import SecretsAway, SetupError
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems import keyring, secret_uses
from framework.systems.keyring import Ring, StoredKey

STORES = components_in(__name__)


class Store(ABC):
    """A store of secrets with its options."""

    does: ClassVar[str]  # completes "`file` …" in the help of `store`

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def value(self, name: str) -> str:
        """The value of a secret. Raises a SetupError if there is none, and `SecretsAway` if the store does not answer."""

    def values(self, names: Iterable[str]) -> Mapping[str, str]:
        """The values of several secrets at one moment, as far as the store can: a login's name and its password belong together."""
        return {name: self.value(name) for name in names}

    def ring(self, name: str, is_rotated: bool) -> tuple[StoredKey, ...]:
        """All keys of a secret that masks, which may be `is_rotated`: what former ones encrypted is still read."""
        return (StoredKey(number=None, state="current", created=None, values={name: self.value(name)}),)

    def add(self, names: Iterable[str]) -> None:  # noqa: B027 - most are left to those who keep them
        """Adds a random value for each name that the store lacks, where it is this machine's own."""

    def forget(self) -> None:  # noqa: B027 - most look up each time
        """Forgets values that were kept to save requests."""


class KeyStore(Store):
    """A store that can be written, and keeps the keys of logins over time."""

    @abstractmethod
    def keys(self, ring: Ring) -> tuple[StoredKey, ...]:
        """All keys of a ring, by the store itself and not by what was kept to save requests."""

    @abstractmethod
    def add_key(self, ring: Ring, number: int, values: Mapping[str, str], by_hand: bool = False) -> None:
        """Adds the next key, which nobody uses yet. The current one gets its number, if it has none."""

    @abstractmethod
    def use_key(self, ring: Ring, number: int) -> None:
        """Makes a key the current one, and the current one a former one: at once, as far as the store can."""

    @abstractmethod
    def remove_key(self, ring: Ring, number: int) -> None:
        """Removes a key that is not the current one."""


def reveal(value: str | SecretRef, store: SecretStore) -> str:
    return reveal_together((value,), store)[0]


def reveal_together(values: Iterable[str | SecretRef], store: SecretStore) -> list[str]:
    """The values of what belongs together, such as a login's name and its password: both before a change of the key, or both after."""
    values = list(values)
    names = list(dict.fromkeys(value.name for value in values if isinstance(value, SecretRef)))
    revealed = (
        dict(open_store(store).values(names)) if len(names) > 1 else {name: open_store(store).value(name) for name in names}
    )
    secret_uses.note({name: text for name, text in revealed.items() if store.is_rotated(name)})
    return [value if isinstance(value, str) else revealed[value.name] for value in values]


def ring(name: str, store: SecretStore) -> tuple[StoredKey, ...]:
    """All keys of a secret that masks, of which one is the current one."""
    is_rotated = name in store.masking
    stored = open_store(store).ring(name, is_rotated)
    current = keyring.current(stored)
    if current is None:
        stored = (*stored, StoredKey(number=None, state="current", created=None, values={name: open_store(store).value(name)}))
    if is_rotated and current:
        secret_uses.note(current.values)
    return stored


def look_again(store: SecretStore) -> None:
    """Looks up what this process has noted. Each work begins with a look-up, so that one that waits for work uses no former values."""
    for name in secret_uses.noted():
        with suppress(SetupError, SecretsAway):  # whoever works with it will say so
            secret_uses.note({name: open_store(store).value(name)})


def make_up(names: Iterable[str], store: SecretStore) -> None:
    """Adds a random value for each missing name to a store of this machine. Other stores are left alone."""
    open_store(store).add(names)


def forget(store: SecretStore) -> None:
    """Makes the next use of each secret look it up: the kept value of one may be why something failed."""
    open_store(store).forget()


def keeps_keys(store: SecretStore) -> bool:
    return issubclass(STORES.load(store.type).STORE, KeyStore)


def open_key_store(store: SecretStore) -> KeyStore:
    """The store of a plan with keys, which has one that keeps them."""
    opened = open_store(store)
    assert isinstance(opened, KeyStore)
    return opened


@functools.lru_cache(maxsize=16)  # what a store keeps is kept once for all who use it
def open_store(store: SecretStore) -> Store:
    component: type[Store] = STORES.load(store.type).STORE
    return component(store.options)
