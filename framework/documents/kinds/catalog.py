"""An Iceberg catalog, which finds tables by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from framework import plan as model
from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.pipeline.written import Pipeline
from framework.language.kind import Kind
from framework.language.options import ComponentName, Document, OptionGroup, RestOfOptions, option
from framework.language.scalars import Name
from framework.plan import Listing
from framework.systems import catalogs

EXAMPLE: str = catalogs.for_new_projects().EXAMPLE


@dataclass(frozen=True)
class Publish(OptionGroup):
    """Another catalog that lists the tables."""

    catalog: Name = option("The other catalog, a `catalog` of the specs.", example="open_catalog")
    namespace: Name | None = option("The namespace of the tables there; default: their own.", default=None, example="markets")


@dataclass(frozen=True)
class Catalog(Document):
    """An Iceberg catalog."""

    options: Annotated[OptionGroup, RestOfOptions("type")]
    type: Annotated[str, ComponentName("catalogs", "CATALOG")] = option("The type of catalog.")
    publish: tuple[Publish, ...] = option(
        "Other catalogs that list all tables of this one, too; `publish` of a pipeline is instead of it.",
        default=(), example="[{catalog: open_catalog}]",
    )  # fmt: skip

    def servers(self) -> Iterable[str | None]:
        return self.options.servers()


def plan_catalogs(draft: Draft, documents: tuple[Catalog, ...]) -> None:
    for spec in documents:
        listings = tuple(
            Listing(listing.catalog, listing.namespace, listing.place("catalog")) for listing in spec.publish if not listing.gaps
        )
        draft.catalogs[spec.name] = model.Catalog(spec.name, spec.type, spec.options, secrets=draft.secrets, publish=listings)
    listing_catalogs = {listing.catalog for catalog in documents for listing in catalog.publish if not listing.gaps}
    listing_catalogs |= {
        listing.catalog for pipeline in draft.written.of(Pipeline) for listing in pipeline.publish or () if not listing.gaps
    }
    draft.homes = {name: catalog for name, catalog in draft.catalogs.items() if name not in listing_catalogs}


def other_logins(documents: tuple[Catalog, ...], used_catalogs: Collection[model.Catalog]) -> Iterator[Problem]:
    """Problems of catalogs to which Java writes with different logins."""
    java_logins = {catalog.name: catalogs.client_of(catalog).login for catalog in used_catalogs if catalog.type}
    logins = [
        (spec, java_logins[spec.name]) for spec in documents if not spec.options.gaps and java_logins.get(spec.name) is not None
    ]
    for spec, login in logins[1:]:
        first_spec, first_login = logins[0]
        if login != first_login:
            message = f"`{spec.name}` and `{first_spec.name}` have other logins, and Java keeps one of a profile, a role or Glue"
            yield Problem(spec.place(), "other-login", message, "give both the same login")


KIND = Kind(Catalog, plan_catalogs, needs=("secrets",))
