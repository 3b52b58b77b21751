"""The reach of a script for AWS: the folders and the names in Glue of one table, or of all tables of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from framework.base.errors import SluiceError
from framework.language.storage import Storage as Written
from framework.operations.access.about import AccessSubject, TablePlace, places
from framework.plan import Storage, Table
from framework.systems import catalogs
from framework.systems.aws_policy import of_namespace, of_table

Use = Literal["ingest", "maintain", "read", "bad-rows", "athena"]


def in_glue(about: AccessSubject) -> TablePlace | None:
    """The place in Glue of the table, or of another one whose files are in the same warehouse."""
    (own_place, *_) = about.places
    other_places = (
        place for pipeline in about.plan.pipelines for place in places(pipeline) if place.keeper.name == own_place.keeper.name
    )
    return next((place for place in (*about.places, *other_places) if place.catalog.type == "glue"), None)


@dataclass(frozen=True)
class ReachedFiles:
    """The location of the files of a catalog's tables, and of the table's own files."""

    warehouse: str
    folder: str  # the table's folder; the warehouse where the script is about all tables
    storage: Storage
    in_specs: bool = True  # whether the specs name the location; otherwise it has placeholders


def files(about: AccessSubject) -> ReachedFiles:
    """The files of the catalog that keeps the table, wherever else it is listed."""
    (own_place, *_) = about.places
    options: Any = own_place.keeper.options
    storage = (options.storage or Written()).planned()
    if own_place.catalog.type == "rest":
        warehouse = "s3://<bucket>/<path of the tables>"
        return ReachedFiles(
            warehouse, warehouse if about.whole_catalog else "s3://<bucket>/<folder of the table>", storage, in_specs=False
        )
    warehouse = str(getattr(options, "warehouse", "") or "").rstrip("/")
    if not own_place.in_bucket:
        message = f"the files of the catalog `{own_place.catalog.name}` are in no bucket: {warehouse}"
        raise SluiceError("no-bucket", message, "keep tables in a bucket: `warehouse: s3://bucket/path`")
    folder = (
        None if about.whole_catalog else catalogs.client_of(own_place.keeper).new_table_folder(about.pipeline.table.identifier)
    )
    return ReachedFiles(warehouse, folder or warehouse, storage)


def _covered_tables(table: Table, use: Use) -> tuple[Table, ...]:
    """The tables that a use of a table reaches."""
    tables = (table, _bad_rows(table))
    if use == "maintain":
        return (*tables, table.second, _bad_rows(table.second))
    return {"ingest": tables, "bad-rows": tables[1:]}.get(use, tables[:1])


def _bad_rows(table: Table) -> Table:
    return replace(table, name=table.bad_rows.rpartition(".")[2])


def folders(about: AccessSubject, use: Use) -> list[str]:
    """The folders that a use reaches. A rebuild's second table has its metadata in a folder of its own, with eight more digits."""
    location, table = files(about), about.pipeline.table
    if about.whole_catalog:
        return [location.warehouse]
    tables = [covered_table for covered_table in _covered_tables(table, use) if covered_table != table.second]
    folders = [location.folder if covered_table == table else _folder(about, covered_table) for covered_table in tables]
    return [*folders, *([f"{location.folder}__????????"] if use == "maintain" else [])]


def _folder(about: AccessSubject, table: Table) -> str:
    """The folder of another table, such as the bad rows of the script's table."""
    (own_place, *_) = about.places
    bad_rows = "the bad rows of the rebuild" if table.name.startswith(about.pipeline.table.second.name) else "the bad rows"
    return catalogs.client_of(own_place.keeper).new_table_folder(table.identifier) or f"s3://<bucket>/<folder of {bad_rows}>"


def covered(about: AccessSubject, use: Use) -> str:
    """The tables that a policy reaches, in words for its heading."""
    if use == "athena":
        return "any workgroup, and the bucket of the results"
    if about.whole_catalog:
        glue = in_glue(about)
        databases = ", ".join(f"`{namespace}`" for namespace in _namespaces(about, glue)) if glue else ""
        glue_part = f"; in Glue every table of {databases}" if glue else ""
        return (
            f"ALL tables of the catalog `{about.pipeline.table.catalog.name}` and their bad rows, also those to come{glue_part}"
        )
    table = about.pipeline.table
    return ", ".join(f"`{covered_table.identifier}`" for covered_table in _covered_tables(table, use))


def every_database(glue: TablePlace) -> tuple[str, ...]:
    options: Any = glue.catalog.options
    return of_namespace(glue.region, options.account, "*")


def names_in_glue(about: AccessSubject, use: Use) -> Iterator[str]:
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


def _names_in(place: TablePlace, table: Table, use: Use) -> list[str]:
    if place.catalog.name == place.keeper.name:
        return [covered_table.name for covered_table in _covered_tables(table, use)]
    return [] if use == "bad-rows" else [place.table]


def _namespaces(about: AccessSubject, glue: TablePlace) -> list[str]:
    """All namespaces that the specs use in the catalog: one policy is for all of them."""
    all_places = (place for pipeline in about.plan.pipelines for place in places(pipeline))
    return sorted({place.namespace for place in all_places if place.catalog.name == glue.catalog.name})
