"""A reference in a spec that stands for a secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecretRef:
    """The name of a secret. Its value is read at each use and stored nowhere."""

    name: str


@dataclass(frozen=True)
class MaskKey:
    """A key of a step that masks. Encrypted values name it by its `id`."""

    id: str
    secret: SecretRef


@dataclass(frozen=True)
class Joined:
    """A column whose masked values are equal exactly if the plain values are. `does` is `hmac` or `encrypt`."""

    column: str
    does: str
    number: bool


@dataclass(frozen=True)
class Masks:
    """The columns that a step masks: `paths` of columns and of fields in them. The first key masks, all of them reveal."""

    keys: tuple[MaskKey, ...]
    paths: tuple[tuple[str, ...], ...]
    encrypted: tuple[tuple[str, ...], ...]  # those that can be revealed
    joined: tuple[Joined, ...] = ()
