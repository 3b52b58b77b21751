"""The subject of a script: a table of the specs with the catalogs in which it can be found, or a topic."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from framework.base.errors import SluiceError
from framework.operations.access.steps import Warned
from framework.plan import Catalog, Pipeline, Plan, Topic
from framework.systems import catalogs


@dataclass(frozen=True)
class TablePlace:
    """A catalog in which a table can be found, its name there, and the catalog in whose warehouse its files are."""

    catalog: Catalog
    identifier: str
    keeper: Catalog

    @property
    def namespace(self) -> str:
        return self.identifier.rpartition(".")[0]

    @property
    def table(self) -> str:
        return self.identifier.rpartition(".")[2]

    @property
    def in_bucket(self) -> bool:
        """Whether the table's files are in an object store."""
        return not catalogs.client_of(self.keeper).on_this_machine

    @property
    def region(self) -> str | None:
        """The region of the catalog, if the specs name one."""
        options: Any = self.catalog.options
        return options.storage.region if options.storage else None


@dataclass(frozen=True)
class AccessSubject:
    """The table that a script is about, and the names and values that another system printed of objects created there."""

    plan: Plan
    pipeline: Pipeline
    _: KW_ONLY
    described: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()  # that a command needs to find the same specs
    whole_catalog: bool = False  # whether the script is about all tables of the table's catalog
    bad_rows: bool = False  # whether readers of the bad rows get something, too

    @property
    def title(self) -> str:
        table = self.pipeline.table
        return f"all tables of the catalog {table.catalog.name}" if self.whole_catalog else table.identifier

    @property
    def places(self) -> Iterator[TablePlace]:
        return places(self.pipeline)

    def place(self, reader: str, *types: str) -> TablePlace:
        """The first place that a reader can find, of these types of catalogs."""
        for place in self.places:
            if place.catalog.type in types:
                return place
        table_catalog = self.pipeline.table.catalog
        type_list = " or ".join(f"`type: {catalog_type}`" for catalog_type in types)
        raise SluiceError(
            "not-reachable",
            f"{reader} finds no table in the catalog `{table_catalog.name}` (`type: {table_catalog.type}`)",
            f"list the table in a catalog of {type_list} by `publish` of the pipeline `{self.pipeline.name}`, or keep it in one",
        )

    def command(self, target: str, *more_flags: str) -> str:
        """The command that prints another script for the same table, or for all tables of its catalog."""
        if self.whole_catalog:
            return self.catalog_command(target, *more_flags)
        bad_rows_flag = ("--bad-rows",) if self.bad_rows else ()
        return access_command(target, self.pipeline.name, (*self.flags, *bad_rows_flag, *more_flags))

    def catalog_command(self, target: str, *more_flags: str) -> str:
        """The command that prints a script for all tables of the table's catalog."""
        return shlex.join(["sluice", "access", target, "--catalog", self.pipeline.table.catalog.name, *self.flags, *more_flags])

    def format_3(self, reader: str) -> Iterator[Warned]:
        """The warning that `reader` may not be able to read the table, if it has Iceberg's format 3."""
        table = self.pipeline.table
        if table.format_version == 3:
            deletes = ", with deletes as deletion vectors" if table.rows_change else ""
            hint = f"write `format_version: 2` under `into` of `{self.pipeline.name}`, and rebuild the table, if yours does not"
            yield Warned(f"the table has Iceberg's format 3{deletes}, which {reader}: {hint}")


@dataclass(frozen=True)
class TopicSubject:
    """The topic that a script is about."""

    plan: Plan
    topic: Topic

    @property
    def title(self) -> str:
        return self.topic.name


def places(pipeline: Pipeline) -> Iterator[TablePlace]:
    """A table's own catalog, and those in which it is listed by `publish`."""
    catalog = pipeline.table.catalog
    yield TablePlace(catalog, pipeline.table.identifier, catalog)
    for listing in pipeline.published:
        yield TablePlace(listing.options.catalog, listing.options.identifier, catalog)


def access_command(target: str, name: str, flags: tuple[str, ...] = ()) -> str:
    """The command that prints a script, as people type it."""
    return shlex.join(["sluice", "access", target, name, *flags])


def name(*parts: str) -> str:
    """A name of an object in another system: letters, digits and underscores."""
    return re.sub(r"\W+", "_", "_".join(parts)).strip("_").lower()
