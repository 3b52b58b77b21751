"""Answers to one select over the tables of catalogs, by DuckDB: no JVM.

Guarantee: only the tables that it names are opened, since no function is allowed that reads a file by its path; nothing is written but
scratch files, and nothing outside of the warehouses is read. Values are exact: what Python cannot hold is text.
"""

from __future__ import annotations

import re
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import duckdb

from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, listed
from framework.core.iceberg import metadata
from framework.core.iceberg.at import Moment, snapshot_at
from framework.core.iceberg.metadata import Metadata
from framework.core.query.database import interruptible, opened, scratch
from framework.core.query.errors import duckdb_errors
from framework.core.query.statement import single_select, table_names
from framework.core.query.values import ValueReader, reader
from framework.plan import Catalog
from framework.sql.standard import identifier, literal

_CHUNK = 1000  # rows


@dataclass(frozen=True)
class AnswerColumn:
    name: str
    type: str
    is_number: bool


class Answer:
    """The rows of a select, read as they are asked for."""

    def __init__(self, database: duckdb.DuckDBPyConnection, text: str) -> None:
        self._database = database
        self._worker = ThreadPoolExecutor(1)
        self._inner = f"(\n{text}\n) AS answer"
        descriptions = self._run(lambda: database.execute(f"SELECT * FROM {self._inner} LIMIT 0").description or [])
        self._readers: list[ValueReader] = [reader(description[1]) for description in descriptions]
        self.columns = tuple(
            AnswerColumn(description[0], str(description[1]), value_reader.is_number)
            for description, value_reader in zip(descriptions, self._readers, strict=True)
        )

    def rows(self, limit: int | None = None) -> Iterator[Sequence[Any]]:
        """The rows, with values of None, bool, int, float, str, bytes, and lists and dicts of them."""
        casts = ", ".join(
            value_reader.select(identifier(column.name)) for column, value_reader in zip(self.columns, self._readers, strict=True)
        )
        limit_clause = "" if limit is None else f" LIMIT {limit}"
        converters = [
            (index, value_reader.value) for index, value_reader in enumerate(self._readers) if value_reader.value is not None
        ]
        self._run(lambda: self._database.execute(f"SELECT {casts} FROM {self._inner}{limit_clause}"))
        while chunk := self._run(lambda: self._database.fetchmany(_CHUNK)):
            for row in map(list, chunk):
                for index, value in converters:
                    if row[index] is not None:
                        row[index] = value(row[index])
                yield row

    def count(self) -> int:
        row = self._run(lambda: self._database.execute(f"SELECT count(*) FROM {self._inner}").fetchone())
        return int(row[0])

    def _run(self, work: Callable[[], Any]) -> Any:
        return interruptible(self._worker, self._database, work)


def ask(catalogs: Sequence[Catalog], text: str, moment: Moment | None = None) -> Answer:
    """Answers a select. `namespace.table` is a table of the first catalog, `catalog.namespace.table` of any. With `moment`, the
    tables are read as they were then, or in that snapshot."""
    catalog_tables = {catalog.name: metadata.names(catalog) for catalog in catalogs}
    select = _one_select(text, catalog_tables)
    names = dict.fromkeys(_resolve(name, catalog_tables) for name in table_names(select))
    tables = {table_name: _current(catalogs, table_name) for table_name in names}
    scratch_folder = scratch()
    try:
        answer = Answer(_opened(tables, scratch_folder, moment), select)
    except BaseException:
        shutil.rmtree(scratch_folder, ignore_errors=True)
        raise
    weakref.finalize(answer, shutil.rmtree, scratch_folder, ignore_errors=True)
    return answer


def _one_select(text: str, catalog_tables: Mapping[str, Sequence[str]]) -> str:
    select = single_select(text)
    if re.match(r"show\b", select, re.IGNORECASE):
        raise SluiceError("not-a-select", f"tables are: {_listed(catalog_tables)}", "`describe NAME` shows the columns of one")
    return select


@dataclass(frozen=True, kw_only=True)
class _NamedTable:
    catalog: str
    namespace: str
    table: str
    short: bool  # named without its catalog


def _resolve(parts: tuple[str, ...], catalog_tables: Mapping[str, Sequence[str]]) -> _NamedTable:
    """The table of a name, ignoring case as DuckDB does."""
    catalogs = {catalog_name.lower(): catalog_name for catalog_name in catalog_tables}
    catalog = next(iter(catalog_tables), "") if len(parts) < 3 else catalogs.get(parts[0].lower(), "")
    tables = catalog_tables.get(catalog, ())
    name = ".".join(parts[-2:])
    table_name = name if name in tables else next((candidate for candidate in tables if candidate.lower() == name.lower()), None)
    if table_name is None or len(parts) == 1:
        raise _unknown(".".join(parts), catalog_tables)
    namespace, _, table = table_name.rpartition(".")
    return _NamedTable(catalog=catalog, namespace=namespace, table=table, short=len(parts) == 2)


def _unknown(name: str, catalog_tables: Mapping[str, Sequence[str]]) -> SluiceError:
    if not any(catalog_tables.values()):
        return SluiceError("unknown-table", f"there is no table `{name}`, and no other yet", "`sluice run` creates the tables")
    names = _names(catalog_tables)
    ends = [candidate for candidate in names if candidate.rpartition(".")[2] == name.lower()]
    hint = f"did you mean `{ends[0]}`?" if ends else did_you_mean(name, names, "")
    tables_text = f"tables are: {_listed(catalog_tables)}"
    return SluiceError(
        "unknown-table",
        f"there is no table `{name}`",
        f"{hint} {tables_text[0].upper()}{tables_text[1:]}" if hint else tables_text,
    )


def _listed(catalog_tables: Mapping[str, Sequence[str]]) -> str:
    return listed(_names(catalog_tables)) or "none yet"


def _names(catalog_tables: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of all tables, with the catalog's name for tables outside the first catalog."""
    first_catalog = next(iter(catalog_tables), "")
    return [
        name if catalog == first_catalog else f"{catalog}.{name}"
        for catalog, tables in catalog_tables.items()
        for name in sorted(tables)
    ]


def _current(catalogs: Sequence[Catalog], named_table: _NamedTable) -> Metadata:
    name = f"{named_table.namespace}.{named_table.table}"
    table = metadata.read(next(catalog for catalog in catalogs if catalog.name == named_table.catalog), name)
    if table is None:
        raise SluiceError("unknown-table", f"the table `{name}` was dropped a moment ago", "run the command again")
    return table


def _opened(tables: Mapping[_NamedTable, Metadata], scratch_folder: str, moment: Moment | None) -> duckdb.DuckDBPyConnection:
    """A database in memory in which these tables are views."""
    stores = [(table.files, str(table.document["location"])) for table in tables.values()]
    folders = [folder for files, location in stores for folder in (files.around(location), files.path(location))]
    with duckdb_errors():
        other_catalogs = {named_table.catalog for named_table in tables if not named_table.short}
        database = opened(folders, scratch_folder, other_catalogs, [files.access(location) for files, location in stores])
        for named_table, table in tables.items():
            schema = f"{identifier(' sluice' if named_table.short else named_table.catalog)}.{identifier(named_table.namespace)}"
            database.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            view = f"{schema}.{identifier(named_table.table)}"
            scan = f"iceberg_scan({literal(table.files.path(table.file))}{_as_of(named_table, table, moment)})"
            database.execute(f"CREATE VIEW {view} AS FROM {scan}")
    return database


def _as_of(named_table: _NamedTable, table: Metadata, moment: Moment | None) -> str:
    """The argument of a scan that reads the table as it was at a moment."""
    if moment is None:
        return ""
    name = f"{named_table.namespace}.{named_table.table}"
    if table.main is None:
        raise SluiceError("no-snapshot-then", f"{name} has no rows yet", "leave out `--at`")
    return f", snapshot_from_id = {snapshot_at(table, name, moment)}"
