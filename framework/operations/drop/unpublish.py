"""Ends what other catalogs show of a table: its name there goes, and the files that were written for it. The table itself stays.

Guarantee: another table under that name stays, the pipeline's own in its catalog too, and so do files that another program wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, published, removal
from framework.core.iceberg.commit import again
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol, refusals
from framework.plan import Catalog, Follower, Pipeline, Plan
from framework.systems import catalogs


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A table in another catalog: `there` as that has it now, if it is the same table and was asked."""

    follower: Follower
    catalog: str
    identifier: str
    table: Metadata
    there: Metadata | None
    there_is: str  # in words

    @property
    def words(self) -> str:
        return f"{self.catalog}.{self.identifier}, {self.there_is}"


def of_pipeline(plan: Plan, pipeline: Pipeline, catalog: str | None = None, ask: bool = True) -> Iterator[Publication]:
    """Each other catalog, or that one, which lists the pipeline's table, in the spec or no longer. Without `ask`, as the table knows it."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    owner = table.properties.get(protocol.OWNER) if table else None
    if table is None or not refusals.is_ours(pipeline, owner):
        return
    for each in (*pipeline.published, *published.left(pipeline, table.refs)):
        name, _, identifier = each.name.partition(".")
        if catalog not in (None, name):
            continue
        create = partial(Publication, follower=each, catalog=name, identifier=identifier, table=table)
        if not ask:
            if each.tag in table.refs:
                yield create(there=None, there_is="which is not asked")
            continue
        there = metadata.read(_catalog(plan, pipeline, name), identifier)
        same = there is not None and _is_listing(pipeline, name, identifier, table, there)
        if same or each.tag in table.refs:
            other = "where another table is: that stays" if there else "where no table is any more"
            yield create(there=there if same else None, there_is="which lists the same table" if same else other)


def end(plan: Plan, pipeline: Pipeline, publication: Publication) -> None:
    """Removes the name from the other catalog, and deletes the metadata files that it had."""
    if publication.there is not None:
        catalog = _catalog(plan, pipeline, publication.catalog)
        now = metadata.read(catalog, publication.identifier)  # somebody may have thought about it for a while
        if now is not None and _is_listing(pipeline, publication.catalog, publication.identifier, publication.table, now):
            try:
                catalogs.of(catalog).drop(publication.identifier)
            except Exception as error:  # whatever its library raises
                raise metadata.unreachable(catalog, error, "did not remove it") from None
    for file in published.files(publication.table, publication.follower, publication.there):
        published.delete(publication.table, file)


def forget_tags(context: Context, pipeline: Pipeline, publication: Publication) -> None:
    """Lets the snapshots go that were kept for it."""
    lake, name = context.lake(pipeline), pipeline.table.identifier

    def once() -> None:
        table = lake.load(name)
        if table is not None:
            removal.unpin(table, publication.follower.tags)

    again(name, once)


def _is_listing(pipeline: Pipeline, catalog: str, identifier: str, table: Metadata, there: Metadata) -> bool:
    """Whether it is the same table, and not in its own catalog: that has what only the table itself has."""
    own = (catalog, identifier) == (pipeline.table.catalog.name, pipeline.table.identifier)
    return there.uuid == table.uuid and not own and not published.is_table_itself(there)


def _catalog(plan: Plan, pipeline: Pipeline, name: str) -> Catalog:
    catalog = next((each for each in plan.catalogs if each.name == name), None)
    if catalog is None:
        message = f"{pipeline.table.identifier} is listed in the catalog `{name}`, which the specs no longer have"
        hint = f"add its document `catalog: {name}` again, or `sluice unpublish {pipeline.name} {name} --forget`"
        raise SluiceError("unknown-catalog", message, hint)
    return catalog
