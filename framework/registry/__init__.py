"""A schema registry: which schemas messages are written by. Everything in it is frozen, since a registry never changes a schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from framework.errors import SluiceError

Kind = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(frozen=True)
class Schema:
    """A registered schema; `references` are what its text takes from other subjects, by the names that it calls them."""

    kind: Kind
    text: str
    references: tuple[tuple[str, Schema], ...] = ()

    def behind(self) -> Iterator[tuple[str, Schema]]:
        """All that it refers to, what they refer to first; each name once."""
        seen: set[str] = set()
        for name, schema in self.references:
            for each, inner in (*schema.behind(), (name, schema)):
                if each not in seen:
                    seen.add(each)
                    yield each, inner


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
