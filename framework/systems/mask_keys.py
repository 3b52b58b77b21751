"""The keys of masks over time, by the ids that encrypted values name: the first key of `pii` is `pii`, the second `pii#2`.

*Guarantee* A new key encrypts, and nothing else changes: hashes are made by the oldest key, so that they stay equal; and what an older
key encrypted can be revealed as long as the key is there.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field

from framework.base.errors import SetupError
from framework.plan import MaskKey, SecretStore
from framework.systems import secrets

SHORTEST = 16  # characters of a key; with fewer it can be guessed


@dataclass(frozen=True)
class MaskRing:
    """The values that one secret has had, the oldest first, each with what its id has behind that of the key. `current` is the place of the
    one that encrypts."""

    suffixes: tuple[str, ...]
    values: tuple[str, ...] = field(repr=False)
    current: int

    @property
    def hashing(self) -> str:
        """A digest of the key that hashes, by which a table knows it again."""
        return hmac.digest(self.values[0].encode(), b"sluice: the key that hashes", "sha256").hex()[:16]

    def ids(self, key: MaskKey) -> Iterator[tuple[str, str]]:
        """The ids and the values of a key of a mask."""
        return ((f"{key.id}{suffix}", value) for suffix, value in zip(self.suffixes, self.values, strict=True))


def ring(name: str, store: SecretStore) -> MaskRing:
    """The keys of a secret. Raises a SetupError if one can be guessed, or if there is none."""
    stored = secrets.ring(name, store)
    if len(stored) > 1 and any(key.number is None for key in stored):
        hint = "`sluice keys list` shows the keys; `sluice keys rotate NAME --to NUMBER` uses one of them"
        raise SetupError("mask-key-unknown", f"the value of the secret `{name}` is none of its keys: somebody wrote it", hint)
    by_age = sorted(stored, key=lambda key: key.number or 1)
    for key in by_age:
        refuse_short(name, key.values[name])
    return MaskRing(
        tuple(suffix(key.number or 1) for key in by_age), tuple(key.values[name] for key in by_age),
        next(place for place, key in enumerate(by_age) if key.state == "current"),
    )  # fmt: skip


def suffix(number: int) -> str:
    """The end of the id of a key: none of the first."""
    return "" if number == 1 else f"#{number}"


def refuse_short(name: str, value: str) -> None:
    if len(value) < SHORTEST:
        message = f"the secret `{name}` of a mask has {len(value)} characters, so it can be guessed"
        raise SetupError("mask-key-short", message, f"take at least {SHORTEST} random ones: `openssl rand -hex 32`")
