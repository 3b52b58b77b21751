"""The keys of a login or a mask over time, as a store of secrets keeps them: the current one, a next one, and former ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["next", "current", "former"]


@dataclass(frozen=True, kw_only=True)
class Ring:
    """The place of some keys in a store: their name there, and the names of the secrets that have the parts of the current key."""

    name: str
    secrets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StoredKey:
    """One of the keys. `values`: its parts by the names of their secrets. `number`: None if the store has only its values, as they
    were put there by hand. `created`: when, in seconds; None if unknown. `used`: of two former keys, the one that was current later has
    the larger number. `by_hand`: a person has made it elsewhere and handed it over."""

    number: int | None
    state: State
    created: float | None
    used: float = 0.0
    by_hand: bool = False
    values: Mapping[str, str] = field(repr=False)


def current(keys: Iterable[StoredKey]) -> StoredKey | None:
    return next((key for key in keys if key.state == "current"), None)


def following(keys: Iterable[StoredKey]) -> StoredKey | None:
    """The key that was made and is not used yet."""
    return next((key for key in keys if key.state == "next"), None)


def former(keys: Iterable[StoredKey]) -> list[StoredKey]:
    """The keys that were current, the one that was so last first."""
    return sorted((key for key in keys if key.state == "former"), key=lambda key: (key.used, key.number or 0), reverse=True)


def is_taken_back(keys: Iterable[StoredKey]) -> bool:
    """Whether somebody went back to an older key."""
    keys = list(keys)
    number = next((key.number for key in keys if key.state == "current"), None)
    return number is not None and any((key.number or 0) > number for key in former(keys))


def acting(keys: Iterable[StoredKey]) -> StoredKey | None:
    """The key that a system takes: the current one, or, after a kill in the middle of a change, the one before."""
    keys = list(keys)
    return current(keys) or next(iter(former(keys)), None)


def next_number(keys: Iterable[StoredKey]) -> int:
    """The number of a key that is made now. A key without a number will have the one before it."""
    keys = list(keys)
    return max((key.number or 0 for key in keys), default=0) + sum(key.number is None for key in keys) + 1


def age_order(keys: Iterable[StoredKey], key: StoredKey) -> int:
    """The place of a key among all: a key without a number is the youngest but for the next one."""
    if key.number is not None:
        return 2 * key.number
    return 2 * max((other.number or 0 for other in keys if other.state != "next"), default=0) + 1
