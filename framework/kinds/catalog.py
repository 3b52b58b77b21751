"""An Iceberg catalog, which finds tables by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framework import model
from framework.errors import Problem
from framework.plan.draft import Draft
from framework.spec.kinds import DocumentKind
from framework.spec.options import Kind, later, option
from framework.spec.scalars import Location

EXAMPLE = """\
catalog: lake
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
"""


@dataclass(frozen=True)
class Catalog(Kind):
    """An Iceberg catalog."""

    type: Literal["sql"] = option("The type of catalog: `sql` is a SQLite file.", example="sql", later=("rest", "glue"))
    uri: Location = option(
        "The catalog's file; it is created if it is missing.", example="sqlite:///.sluice/lake.db", aka=["url"]
    )
    warehouse: Location = option(
        "The folder for the tables' files.", example=".sluice/warehouse", aka=["path", "location", "bucket"]
    )

    def problems(self) -> Iterable[Problem]:
        if "uri" not in self.gaps and "?" in self.uri:
            message = "`uri` contains a `?`, and Spark would read the text after it as settings of SQLite"
            yield Problem(self.place("uri"), "bad-location", message, "write only the path of the file")

    oauth: None = later("How to log in to a REST catalog.")
    storage: None = later("The object store that holds the files.")


def resolve(draft: Draft, documents: tuple[Catalog, ...]) -> None:
    for catalog in documents:
        draft.catalogs[catalog.name] = model.Catalog(catalog.name, catalog.type, catalog.uri, catalog.warehouse)
        if not catalog.uri.startswith("sqlite:///"):
            hint = "write `sqlite:///` and the path of a file, such as `sqlite:///.sluice/lake.db`"
            draft.problems.append(
                Problem(catalog.place("uri"), "bad-catalog-uri", f"`{catalog.uri}` is not a SQLite address", hint)
            )
        if "://" in catalog.warehouse and not catalog.warehouse.startswith("file://"):
            hint = "write a folder, such as `.sluice/warehouse`"
            draft.problems.append(
                Problem(catalog.place("warehouse"), "not-in-this-version", "object stores are not in this version", hint)
            )


KIND = DocumentKind(Catalog, resolve)
