"""Ends what other catalogs show of a table: its name there goes, and the files that were written for it. The table itself stays.

Guarantee: another table under that name stays, and so do files that another program wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from framework import catalogs
from framework.engine.iceberg import metadata, published
from framework.engine.iceberg.metadata import Metadata
from framework.errors import SluiceError
from framework.model import Catalog, Follower, Pipeline, Plan


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A table in another catalog: `there` as that has it now, if it is the same table."""

    follower: Follower
    catalog: Catalog
    identifier: str
    table: Metadata
    there: Metadata | None
    other: Metadata | None

    @property
    def words(self) -> str:
        name = f"{self.catalog.name}.{self.identifier}"
        if self.there is not None:
            return f"{name}, which lists the same table"
        return f"{name}, where another table is: that stays" if self.other else f"{name}, where no table is any more"


def of_pipeline(plan: Plan, pipeline: Pipeline) -> Iterator[Publication]:
    """Each other catalog that lists the pipeline's table, in the spec or no longer."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if table is None:
        return
    for each in (*pipeline.published, *published.left(pipeline, table)):
        if each.tag not in table.refs:
            continue
        name, _, identifier = each.name.partition(".")
        catalog = next((catalog for catalog in plan.catalogs if catalog.name == name), None)
        if catalog is None:
            message = f"{pipeline.table.identifier} is listed in the catalog `{name}`, which the specs no longer have"
            raise SluiceError("unknown-catalog", message, f"add its document `catalog: {name}` again until it is unpublished")
        other = metadata.read(catalog, identifier)
        same = other if other is not None and other.uuid == table.uuid else None
        yield Publication(follower=each, catalog=catalog, identifier=identifier, table=table, there=same, other=other)


def end(publication: Publication) -> None:
    """Removes the name from the other catalog, and deletes the metadata files that it had."""
    there = publication.there
    if there is not None:
        try:
            catalogs.of(publication.catalog).drop(publication.identifier)
        except (catalogs.Refused, OSError) as error:
            raise metadata.unreachable(publication.catalog, error) from None
    for file in published.files(publication.table, publication.follower, there):
        published.delete(publication.table, file)
