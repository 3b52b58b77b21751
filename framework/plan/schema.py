"""Registered schemas. Everything here is frozen, since a registry never changes a schema."""

from __future__ import annotations

from dataclasses import dataclass

from framework.base.errors import SluiceError


@dataclass(frozen=True)
class Schema:
    """A registered schema. `behind` holds every schema that the text refers to, directly or not, under the name in the text.
    Each name is there once, and a schema comes before those that refer to it. The schemas in `behind` have an empty `behind`, so
    that a schema is never larger than its texts."""

    kind: str  # as the registry calls it
    text: str
    behind: tuple[tuple[str, Schema], ...] = ()


@dataclass(frozen=True)
class Version:
    """A schema and the id that messages carry. `number` is its version in the topic's subject; None: it is from another subject."""

    id: int
    schema: Schema
    number: int | None = None

    def __str__(self) -> str:
        return f"schema {self.id}" + (f" (version {self.number})" if self.number else "")


@dataclass(frozen=True)
class Subject:
    """A subject's versions, the oldest first. With `trouble` the registry did not answer, and the versions are from the cache."""

    name: str
    versions: tuple[Version, ...]
    trouble: SluiceError | None = None
