"""An Iceberg catalog, which finds tables by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from framework import catalogs, model
from framework.plan.draft import Draft
from framework.spec.kinds import DocumentKind
from framework.spec.options import Bound, Kind, Named, OptionsOf, option

EXAMPLE: str = catalogs.for_new_projects().EXAMPLE


@dataclass(frozen=True)
class Catalog(Kind):
    """An Iceberg catalog."""

    options: Annotated[Bound, OptionsOf("type")]
    type: Annotated[str, Named(catalogs.PACKAGE, "CATALOG")] = option("The type of catalog.", later=("glue",))


def resolve(draft: Draft, documents: tuple[Catalog, ...]) -> None:
    draft.catalogs = {each.name: model.Catalog(each.name, each.type, each.options, draft.secrets) for each in documents}


KIND = DocumentKind(Catalog, resolve, needs=("secrets",))
