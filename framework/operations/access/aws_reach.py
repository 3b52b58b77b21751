"""What a script for AWS reaches: the folders and the names in Glue of one table, or of all tables of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from framework.base.errors import SluiceError
from framework.language.storage import Storage as Written
from framework.operations.access.about import About, Place, places
from framework.plan import Storage, Table
from framework.systems import catalogs
from framework.systems.aws_policy import of_namespace, of_table

Use = Literal["ingest", "maintain", "read", "bad-rows", "athena"]


def in_glue(about: About) -> Place | None:
    """Where the table, or another one whose files are in the same warehouse, is in Glue."""
    (own, *_) = about.places
    others = (place for pipeline in about.plan.pipelines for place in places(pipeline) if place.keeper.name == own.keeper.name)
    return next((place for place in (*about.places, *others) if place.catalog.type == "glue"), None)


@dataclass(frozen=True)
class Files:
    """Where the files of a catalog's tables are, and in it those of the table."""

    warehouse: str
    folder: str  # that of the table; the warehouse where the script is about all tables
    storage: Storage
    told: bool = True  # whether the specs say it


def files(about: About) -> Files:
    """Of the catalog that keeps the table, wherever else it is listed."""
    (own, *_) = about.places
    options: Any = own.keeper.options
    storage = (options.storage or Written()).planned()
    if own.catalog.type == "rest":
        warehouse = "s3://<bucket>/<path of the tables>"
        return Files(warehouse, warehouse if about.whole_catalog else "s3://<bucket>/<folder of the table>", storage, told=False)
    warehouse = str(getattr(options, "warehouse", "") or "").rstrip("/")
    if not own.in_bucket:
        message = f"the files of the catalog `{own.catalog.name}` are in no bucket: {warehouse}"
        raise SluiceError("no-bucket", message, "keep tables in a bucket: `warehouse: s3://bucket/path`")
    folder = None if about.whole_catalog else catalogs.of(own.keeper).new_table_folder(about.pipeline.table.identifier)
    return Files(warehouse, folder or warehouse, storage)


def _covered_tables(table: Table, use: Use) -> tuple[Table, ...]:
    """The tables that a use of a table reaches."""
    both = (table, _bad_rows(table))
    if use == "maintain":
        return (*both, table.second, _bad_rows(table.second))
    return {"ingest": both, "bad-rows": both[1:]}.get(use, both[:1])


def _bad_rows(table: Table) -> Table:
    return replace(table, name=table.bad_rows.rpartition(".")[2])


def folders(about: About, use: Use) -> list[str]:
    """The folders that a use reaches. A rebuild's second table has its metadata in a folder of its own, with eight more digits."""
    where, table = files(about), about.pipeline.table
    if about.whole_catalog:
        return [where.warehouse]
    kept = [other for other in _covered_tables(table, use) if other != table.second]
    folders = [where.folder if other == table else _folder(about, other) for other in kept]
    return [*folders, *([f"{where.folder}__????????"] if use == "maintain" else [])]


def _folder(about: About, table: Table) -> str:
    """The folder of a table besides the own one."""
    (own, *_) = about.places
    bad_rows = "the bad rows of the rebuild" if table.name.startswith(about.pipeline.table.second.name) else "the bad rows"
    return catalogs.of(own.keeper).new_table_folder(table.identifier) or f"s3://<bucket>/<folder of {bad_rows}>"


def covered(about: About, use: Use) -> str:
    """What a policy lets its login reach, for its heading."""
    if use == "athena":
        return "any workgroup, and the bucket of the results"
    if about.whole_catalog:
        glue = in_glue(about)
        databases = ", ".join(f"`{namespace}`" for namespace in _namespaces(about, glue)) if glue else ""
        also = f"; in Glue every table of {databases}" if glue else ""
        return f"ALL tables of the catalog `{about.pipeline.table.catalog.name}` and their bad rows, also those to come{also}"
    table = about.pipeline.table
    return ", ".join(f"`{covered_table.identifier}`" for covered_table in _covered_tables(table, use))


def every_database(glue: Place) -> tuple[str, ...]:
    options: Any = glue.catalog.options
    return of_namespace(glue.region, options.account, "*")


def names_in_glue(about: About, use: Use) -> Iterator[str]:
    """The names in Glue that a use reaches. A catalog in which the table is listed by `publish` has the table alone."""
    if about.whole_catalog:
        glue = in_glue(about)
        if glue:
            glue_options: Any = glue.catalog.options
            for namespace in _namespaces(about, glue):
                yield from of_namespace(glue.region, glue_options.account, namespace)
        return
    for place in about.places:
        options: Any = place.catalog.options
        if place.catalog.type == "glue":
            for table_name in _names_in(place, about.pipeline.table, use):
                yield from of_table(place.region, options.account, place.namespace, table_name)


def _names_in(place: Place, table: Table, use: Use) -> list[str]:
    if place.catalog.name == place.keeper.name:
        return [other.name for other in _covered_tables(table, use)]
    return [] if use == "bad-rows" else [place.table]


def _namespaces(about: About, glue: Place) -> list[str]:
    """All that the specs use in the catalog: one policy is for all of them."""
    every = (place for pipeline in about.plan.pipelines for place in places(pipeline))
    return sorted({place.namespace for place in every if place.catalog.name == glue.catalog.name})
