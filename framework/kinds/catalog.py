"""An Iceberg catalog, which finds tables by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from framework import catalogs, model
from framework.errors import Problem
from framework.plan.draft import Draft
from framework.spec.kinds import DocumentKind
from framework.spec.options import Bound, Kind, Named, OptionsOf, option

EXAMPLE: str = catalogs.for_new_projects().EXAMPLE


@dataclass(frozen=True)
class Catalog(Kind):
    """An Iceberg catalog."""

    options: Annotated[Bound, OptionsOf("type")]
    type: Annotated[str, Named(catalogs.PACKAGE, "CATALOG")] = option("The type of catalog.")


def resolve(draft: Draft, documents: tuple[Catalog, ...]) -> None:
    draft.catalogs = {each.name: model.Catalog(each.name, each.type, each.options, draft.secrets) for each in documents}
    logins = [(each, catalogs.of(draft.catalogs[each.name]).login) for each in documents if not each.options.gaps]
    of_one = [(each, login) for each, login in logins if login is not None]
    for each, login in of_one[1:]:
        first, its = of_one[0]
        if login != its:
            message = f"`{each.name}` and `{first.name}` have other logins, and Java keeps one of a profile, a role or Glue"
            draft.problems.append(Problem(each.place(), "other-login", message, "give both the same login"))


KIND = DocumentKind(Catalog, resolve, needs=("secrets",))
