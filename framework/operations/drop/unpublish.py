"""Removes a table from other catalogs: its name there, and the files that were written for it. The table itself stays.

Guarantee: a different table under that name stays, and so do the pipeline's own table and files that another program wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, published
from framework.core.iceberg.commit import again
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.updates import without_own
from framework.core.rules import protocol, refusals
from framework.plan import Catalog, Follower, Pipeline, Plan
from framework.systems import catalogs


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A table in another catalog. `listed_table` is that catalog's metadata of it, if the catalog was asked and has the same table."""

    follower: Follower
    catalog: str
    identifier: str
    table: Metadata
    listed_table: Metadata | None
    listing: str  # its state in that catalog, in words

    @property
    def words(self) -> str:
        return f"{self.catalog}.{self.identifier}, {self.listing}"


def of_pipeline(plan: Plan, pipeline: Pipeline, catalog: str | None = None, ask: bool = True) -> Iterator[Publication]:
    """The listings of the pipeline's table in other catalogs, or in `catalog` alone, also those that the spec no longer names. Without
    `ask` they come from the table's own tags."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    owner = table.properties.get(protocol.OWNER) if table else None
    if table is None or not refusals.is_ours(pipeline, owner):
        return
    for follower in (*pipeline.published, *published.former_followers(pipeline, table.refs)):
        name, _, identifier = follower.name.partition(".")
        if catalog not in (None, name):
            continue
        create = partial(Publication, follower=follower, catalog=name, identifier=identifier, table=table)
        if not ask:
            if follower.tag in table.refs:
                yield create(listed_table=None, listing="which is not asked")
            continue
        listed_table = metadata.read(_catalog(plan, pipeline, name), identifier)
        is_same = listed_table is not None and _is_listing(pipeline, name, identifier, table, listed_table)
        if is_same or follower.tag in table.refs:
            other_state = "where another table is: that stays" if listed_table else "where no table is any more"
            yield create(
                listed_table=listed_table if is_same else None, listing="which lists the same table" if is_same else other_state
            )


def end(plan: Plan, pipeline: Pipeline, publication: Publication) -> None:
    """Removes the table's name from the other catalog, and deletes the metadata files that were written for it."""
    if publication.listed_table is not None:
        catalog = _catalog(plan, pipeline, publication.catalog)
        current_table = metadata.read(catalog, publication.identifier)  # it may have changed while a person decided
        if current_table is not None and _is_listing(
            pipeline, publication.catalog, publication.identifier, publication.table, current_table
        ):
            try:
                catalogs.client_of(catalog).drop(publication.identifier)
            except Exception as error:  # whatever its library raises
                raise metadata.unreachable(catalog, error, "did not remove it") from None
    for file in published.files(publication.table, publication.follower, publication.listed_table):
        published.delete(publication.table, file)


def forget_tags(context: Context, pipeline: Pipeline, publication: Publication) -> None:
    """Removes the tags that keep snapshots for the publication."""
    lake, name = context.lake(pipeline), pipeline.table.identifier

    def once() -> None:
        table = lake.load(name)
        if table is not None:
            without_own(table, publication.follower.tags)

    again(name, once)


def _is_listing(pipeline: Pipeline, catalog: str, identifier: str, table: Metadata, listed_table: Metadata) -> bool:
    """Whether `listed_table` lists the pipeline's table in another catalog, and is not that table itself."""
    is_own = (catalog, identifier) == (pipeline.table.catalog.name, pipeline.table.identifier)
    return listed_table.uuid == table.uuid and not is_own and not published.is_table_itself(listed_table)


def _catalog(plan: Plan, pipeline: Pipeline, name: str) -> Catalog:
    catalog = next((catalog for catalog in plan.catalogs if catalog.name == name), None)
    if catalog is None:
        message = f"{pipeline.table.identifier} is listed in the catalog `{name}`, which the specs no longer have"
        hint = f"add its document `catalog: {name}` again, or `sluice unpublish {pipeline.name} {name} --forget`"
        raise SluiceError("unknown-catalog", message, hint)
    return catalog
