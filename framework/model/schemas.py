"""Schemas of a registry, by which messages are written. Everything here is frozen, since a registry never changes a schema."""

from __future__ import annotations

from dataclasses import dataclass

from framework.errors import SluiceError


@dataclass(frozen=True)
class Schema:
    """A registered schema. `behind` is all that its text takes from other subjects, by the names that it calls them: each name once,
    what others need first, and none of them with a list of its own, so that a schema is never larger than its texts."""

    kind: str  # as the registry calls it
    text: str
    behind: tuple[tuple[str, Schema], ...] = ()


@dataclass(frozen=True)
class Version:
    """A schema by the id that messages carry. `number` is its version in the topic's subject; None: it is of another one."""

    id: int
    schema: Schema
    number: int | None = None

    def __str__(self) -> str:
        return f"schema {self.id}" + (f" (version {self.number})" if self.number else "")


@dataclass(frozen=True)
class Subject:
    """A subject's versions, the oldest first. `trouble`: they are from the last time that the registry answered."""

    name: str
    versions: tuple[Version, ...]
    trouble: SluiceError | None = None
