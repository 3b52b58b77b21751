"""What a script is about: a table of the specs with the catalogs in which it can be found, or a topic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from framework import catalogs
from framework.errors import SluiceError
from framework.model import Catalog, Pipeline, Plan, SecretRef, Topic


@dataclass(frozen=True)
class Place:
    """A catalog in which a table can be found, and its name there."""

    catalog: Catalog
    identifier: str

    @property
    def namespace(self) -> str:
        return self.identifier.rpartition(".")[0]

    @property
    def table(self) -> str:
        return self.identifier.rpartition(".")[2]

    @property
    def in_bucket(self) -> bool:
        """Whether the tables' files are in an object store."""
        return not catalogs.of(self.catalog).on_this_machine


@dataclass(frozen=True)
class About:
    """A table, and what another system told of what was created there."""

    plan: Plan
    pipeline: Pipeline
    described: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.pipeline.table.identifier

    @property
    def places(self) -> Iterator[Place]:
        """Its own catalog, and those in which it is listed by `publish`."""
        yield Place(self.pipeline.table.catalog, self.pipeline.table.identifier)
        for each in self.pipeline.published:
            yield Place(each.options.catalog, each.options.identifier)

    def place(self, reader: str, *types: str) -> Place:
        """The first place that a reader can find, of these types of catalogs."""
        for place in self.places:
            if place.catalog.type in types:
                return place
        own = self.pipeline.table.catalog
        wanted = " or ".join(f"`type: {each}`" for each in types)
        raise SluiceError(
            "not-reachable",
            f"{reader} finds no table in the catalog `{own.name}` (`type: {own.type}`)",
            f"list the table in a catalog of {wanted} by `publish` of the pipeline `{self.pipeline.name}`, or keep it in one",
        )


@dataclass(frozen=True)
class AboutTopic:
    """A topic, and who is to read or write it."""

    plan: Plan
    topic: Topic

    @property
    def title(self) -> str:
        return self.topic.name


def secret(value: str | SecretRef) -> str:
    """In place of a value: nothing that is printed has one."""
    return f"<secret {value.name}>" if isinstance(value, SecretRef) else value


def name(*parts: str) -> str:
    """A name of an object in another system: letters, digits and underscores."""
    return re.sub(r"\W+", "_", "_".join(parts)).strip("_").lower()
