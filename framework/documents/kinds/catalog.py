"""An Iceberg catalog, which finds tables by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from framework import plan as model
from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.pipeline.written import Pipeline
from framework.language.kind import DocumentKind
from framework.language.options import Bound, Kind, Named, OptionsOf, option
from framework.language.scalars import Name
from framework.plan import Listing
from framework.systems import catalogs

EXAMPLE: str = catalogs.for_new_projects().EXAMPLE


@dataclass(frozen=True)
class Publish(Bound):
    """Another catalog that lists the tables."""

    catalog: Name = option("The other catalog, a `catalog` of the specs.", example="open_catalog")
    namespace: Name | None = option("The namespace of the tables there; default: their own.", default=None, example="markets")


@dataclass(frozen=True)
class Catalog(Kind):
    """An Iceberg catalog."""

    options: Annotated[Bound, OptionsOf("type")]
    type: Annotated[str, Named("catalogs", "CATALOG")] = option("The type of catalog.")
    publish: tuple[Publish, ...] = option(
        "Other catalogs that list all tables of this one, too; `publish` of a pipeline is instead of it.",
        default=(), example="[{catalog: open_catalog}]",
    )  # fmt: skip

    def servers(self) -> Iterable[str | None]:
        return self.options.servers()


def resolve(draft: Draft, documents: tuple[Catalog, ...]) -> None:
    for each in documents:
        publish = tuple(Listing(to.catalog, to.namespace, to.place("catalog")) for to in each.publish if not to.gaps)
        draft.catalogs[each.name] = model.Catalog(each.name, each.type, each.options, secrets=draft.secrets, publish=publish)
    elsewhere = {to.catalog for catalog in documents for to in catalog.publish if not to.gaps}
    elsewhere |= {to.catalog for pipeline in draft.written.of(Pipeline) for to in pipeline.publish or () if not to.gaps}
    draft.homes = {name: each for name, each in draft.catalogs.items() if name not in elsewhere}


def other_logins(documents: tuple[Catalog, ...], written: Collection[model.Catalog]) -> Iterator[Problem]:
    """Of catalogs to which Java writes."""
    of_java = {each.name: catalogs.of(each).login for each in written if each.type}
    logins = [(each, of_java[each.name]) for each in documents if not each.options.gaps and of_java.get(each.name) is not None]
    for each, login in logins[1:]:
        first, its = logins[0]
        if login != its:
            message = f"`{each.name}` and `{first.name}` have other logins, and Java keeps one of a profile, a role or Glue"
            yield Problem(each.place(), "other-login", message, "give both the same login")


KIND = DocumentKind(Catalog, resolve, needs=("secrets",))
