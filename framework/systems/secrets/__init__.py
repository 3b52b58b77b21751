"""Values of secrets, looked up when they are used and never stored. The stores are one file each: `store: file` of a spec is `file.py`.

A store's file has `Options`, the options of its document; and `STORE`, its class, whose objects look values up.

*Guarantee* A spec can name neither just any environment variable, nor a file outside the project.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from framework.base.components import components_in
from framework.plan import SecretStore
from framework.plan.secret import SecretRef

STORES = components_in(__name__)


class Store(ABC):
    """A store of secrets with its options."""

    does: ClassVar[str]  # completes "`file` …" in the help of `store`

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def value(self, name: str) -> str:
        """The value of a secret. Raises a SetupError if there is none, and `SecretsAway` if the store does not answer."""

    def add(self, names: Iterable[str]) -> None:  # noqa: B027 - most are left to those who keep them
        """Adds a random value for each name that the store lacks, where it is this machine's own."""

    def forget(self) -> None:  # noqa: B027 - most look up each time
        """Forgets values that were kept to save requests."""


def reveal(value: str | SecretRef, store: SecretStore) -> str:
    return value if isinstance(value, str) else _store(store).value(value.name)


def make_up(names: Iterable[str], store: SecretStore) -> None:
    """Adds a random value for each missing name to a store of this machine. Other stores are left alone."""
    _store(store).add(names)


def forget(store: SecretStore) -> None:
    """Makes the next use of each secret look it up: the kept value of one may be why something failed."""
    _store(store).forget()


@functools.lru_cache(maxsize=16)  # what a store keeps is kept once for all who use it
def _store(store: SecretStore) -> Store:
    component: type[Store] = STORES.load(store.type).STORE
    return component(store.options)
