"""The keys of a plan as they are now, and who uses which."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from framework.base.errors import SluiceError
from framework.features.key_types import KeyType
from framework.plan import Plan
from framework.plan.keys import Keys
from framework.systems import keyring, secret_uses
from framework.systems.keyring import Ring, StoredKey
from framework.systems.secrets import open_key_store

_AHEAD = 300.0  # seconds by which clocks may differ


@dataclass(frozen=True, kw_only=True)
class KeyStanding:
    """One key. `known_as`: what it is called where it is used; `users`: the processes of this machine that use it."""

    number: int | None
    state: keyring.State
    created: float | None
    known_as: str
    users: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KeysStanding:
    """The keys of one document, the youngest first. `due`: the moment at which the current one is to be replaced; None: never by itself.
    `taken_back`: somebody went back to an older one. `error`: why nothing is known."""

    keys: Keys
    all: tuple[KeyStanding, ...] = ()
    due: float | None = None
    taken_back: bool = False
    error: SluiceError | None = None

    @property
    def current(self) -> KeyStanding | None:
        return next((key for key in self.all if key.state == "current"), None)

    @property
    def overdue(self) -> bool:
        return self.due is not None and self.due <= time.time()


def standings(plan: Plan) -> Iterator[KeysStanding]:
    for document in plan.documents_of("keys"):
        try:
            yield standing(plan, document.value)
        except SluiceError as error:
            yield KeysStanding(keys=document.value, error=error)


def standing(plan: Plan, keys: Keys) -> KeysStanding:
    stored = stored_keys(plan, keys)
    seen_uses = tuple(secret_uses.uses())
    by_age = sorted(stored, key=lambda key: keyring.age_order(stored, key), reverse=True)
    all_keys = (_standing(keys, key, seen_uses) for key in by_age)
    return KeysStanding(
        keys=keys, all=tuple(all_keys), due=due(keys, keyring.current(stored)), taken_back=keyring.is_taken_back(stored)
    )


def _standing(keys: Keys, key: StoredKey, seen_uses: tuple[secret_uses.Use, ...]) -> KeyStanding:
    return KeyStanding(
        number=key.number, state=key.state, created=key.created, known_as=type_of(keys).known_as(key.values),
        users=users(keys, key, seen_uses),
    )  # fmt: skip


def due(keys: Keys, current: StoredKey | None) -> float | None:
    """The moment at which the current key is to be replaced. One of unknown age, or of the future, and a missing one, are due at once."""
    if keys.rotate_every is None:
        return None
    created = current.created if current else None
    return 0.0 if created is None or created > time.time() + _AHEAD else created + keys.rotate_every


def users(keys: Keys, key: StoredKey, seen_uses: tuple[secret_uses.Use, ...]) -> tuple[str, ...]:
    """The processes of this machine that use a key: those that have looked up its last part, and those of which nobody can say."""
    name = keys.secrets[-1]
    of_secret = [use for use in seen_uses if use.secret == name]
    digest = secret_uses.of_value(name, key.values[name])
    using = dict.fromkeys(use.process for use in of_secret if use.digest == digest and digest)
    unclear = dict.fromkeys(f"perhaps {use.process}" for use in of_secret if not secret_uses.comparable(use.digest, digest))
    return (*using, *unclear)


def type_of(keys: Keys) -> KeyType:
    return cast(KeyType, keys.lock)


def ring_of(keys: Keys) -> Ring:
    return Ring(name=keys.secrets[0], secrets=keys.secrets)


def stored_keys(plan: Plan, keys: Keys) -> tuple[StoredKey, ...]:
    return open_key_store(plan.secrets).keys(ring_of(keys))
