"""The tables of a catalog and the current metadata file of each, read from the catalog's own database: PyIceberg loads too slowly."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from framework.engine.spark.session import database
from framework.errors import CatalogAway
from framework.model import Catalog

_PATIENCE = 30.0  # seconds that another program's commit is waited for
_SHORT = 5.0  # the same, where one table is read


def tables(catalog: Catalog) -> dict[str, str]:
    """The path of the current metadata file of each table, by `namespace.table`."""
    try:
        rows = _rows(catalog, _PATIENCE)
    except sqlite3.Error as error:
        hint = f"see `uri` of the catalog `{catalog.name}`"
        raise CatalogAway("catalog-unreachable", f"the catalog `{catalog.name}` cannot be read: {error}", hint) from None
    # A catalog of the older layout has no such column, and no views.
    kept = [row for row in rows if "iceberg_type" not in row.keys() or row["iceberg_type"] in (None, "TABLE")]  # noqa: SIM118
    return {f"{row['table_namespace']}.{row['table_name']}": local(row["metadata_location"]) for row in kept}


def location(catalog: Catalog, identifier: str) -> str | None:
    """The metadata file of one table, as the catalog has it; None where there is no table."""
    rows = _rows(catalog, _SHORT, "AND table_namespace = ? AND table_name = ?", *identifier.rsplit(".", 1))
    return str(rows[0]["metadata_location"]) if rows else None


def _rows(catalog: Catalog, patience: float, more: str = "", *values: str) -> list[sqlite3.Row]:
    path = database(catalog)
    if not path.exists():
        return []
    # Not read-only: what a killed writer left half done is put right by the next one who opens the database.
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=patience)) as file:
        file.row_factory = sqlite3.Row
        if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone():
            return []  # no table was created yet
        return file.execute(f"SELECT * FROM iceberg_tables WHERE catalog_name = ? {more}", (catalog.name, *values)).fetchall()


def local(location: str) -> str:
    """The path of a file as Iceberg names it: `file:/a`, `file:///a` or `/a`."""
    path = location.removeprefix("file:")
    return path if location == path else "/" + path.lstrip("/")
