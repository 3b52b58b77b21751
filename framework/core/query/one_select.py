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
from framework.core.query.values import Reader, reader
from framework.plan import Catalog
from framework.sql.standard import identifier, literal

_CHUNK = 1000  # rows


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    is_number: bool


class Answer:
    """The rows of a select, read as they are asked for."""

    def __init__(self, database: duckdb.DuckDBPyConnection, text: str) -> None:
        self._database = database
        self._worker = ThreadPoolExecutor(1)
        self._inner = f"(\n{text}\n) AS answer"
        described = self._run(lambda: database.execute(f"SELECT * FROM {self._inner} LIMIT 0").description or [])
        self._readers: list[Reader] = [reader(each[1]) for each in described]
        self.columns = tuple(
            Column(each[0], str(each[1]), read.is_number) for each, read in zip(described, self._readers, strict=True)
        )

    def rows(self, limit: int | None = None) -> Iterator[Sequence[Any]]:
        """The rows, with values of None, bool, int, float, str, bytes, and lists and dicts of them."""
        casts = ", ".join(read.select(identifier(each.name)) for each, read in zip(self.columns, self._readers, strict=True))
        most = "" if limit is None else f" LIMIT {limit}"
        converters = [(index, read.value) for index, read in enumerate(self._readers) if read.value is not None]
        self._run(lambda: self._database.execute(f"SELECT {casts} FROM {self._inner}{most}"))
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


def ask(asked: Sequence[Catalog], text: str, at: Moment | None = None) -> Answer:
    """`namespace.table` is a table of the first catalog, `catalog.namespace.table` of any. `at`: the tables as they were at a moment or
    in a snapshot."""
    catalog_tables = {catalog.name: metadata.names(catalog) for catalog in asked}
    select = _one_select(text, catalog_tables)
    names = dict.fromkeys(_resolve(name, catalog_tables) for name in table_names(select))
    tables = {each: _current(asked, each) for each in names}
    scratch_folder = scratch()
    try:
        answer = Answer(_opened(tables, scratch_folder, at), select)
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
    catalogs = {each.lower(): each for each in catalog_tables}
    catalog = next(iter(catalog_tables), "") if len(parts) < 3 else catalogs.get(parts[0].lower(), "")
    tables = catalog_tables.get(catalog, ())
    name = ".".join(parts[-2:])
    table_name = name if name in tables else next((each for each in tables if each.lower() == name.lower()), None)
    if table_name is None or len(parts) == 1:
        raise _unknown(".".join(parts), catalog_tables)
    namespace, _, table = table_name.rpartition(".")
    return _NamedTable(catalog=catalog, namespace=namespace, table=table, short=len(parts) == 2)


def _unknown(name: str, catalog_tables: Mapping[str, Sequence[str]]) -> SluiceError:
    if not any(catalog_tables.values()):
        return SluiceError("unknown-table", f"there is no table `{name}`, and no other yet", "`sluice run` creates the tables")
    names = _names(catalog_tables)
    ends = [each for each in names if each.rpartition(".")[2] == name.lower()]
    hint = f"did you mean `{ends[0]}`?" if ends else did_you_mean(name, names, "")
    tables = f"tables are: {_listed(catalog_tables)}"
    return SluiceError(
        "unknown-table", f"there is no table `{name}`", f"{hint} {tables[0].upper()}{tables[1:]}" if hint else tables
    )


def _listed(catalog_tables: Mapping[str, Sequence[str]]) -> str:
    return listed(_names(catalog_tables)) or "none yet"


def _names(catalog_tables: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of all tables, with the catalog for all but the first."""
    first = next(iter(catalog_tables), "")
    return [
        name if catalog == first else f"{catalog}.{name}" for catalog, tables in catalog_tables.items() for name in sorted(tables)
    ]


def _current(asked: Sequence[Catalog], named: _NamedTable) -> Metadata:
    name = f"{named.namespace}.{named.table}"
    table = metadata.read(next(each for each in asked if each.name == named.catalog), name)
    if table is None:
        raise SluiceError("unknown-table", f"the table `{name}` was dropped a moment ago", "run the command again")
    return table


def _opened(tables: Mapping[_NamedTable, Metadata], scratch_folder: str, at: Moment | None) -> duckdb.DuckDBPyConnection:
    """A database in memory in which these tables are views."""
    stores = [(table.files, str(table.document["location"])) for table in tables.values()]
    folders = [folder for files, location in stores for folder in (files.around(location), files.path(location))]
    with duckdb_errors():
        others = {each.catalog for each in tables if not each.short}
        database = opened(folders, scratch_folder, others, [files.access(location) for files, location in stores])
        for each, table in tables.items():
            schema = f"{identifier(' sluice' if each.short else each.catalog)}.{identifier(each.namespace)}"
            database.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            view = f"{schema}.{identifier(each.table)}"
            scan = f"iceberg_scan({literal(table.files.path(table.file))}{_as_of(each, table, at)})"
            database.execute(f"CREATE VIEW {view} AS FROM {scan}")
    return database


def _as_of(named: _NamedTable, table: Metadata, at: Moment | None) -> str:
    """The argument of a scan for the tables as they were."""
    if at is None:
        return ""
    name = f"{named.namespace}.{named.table}"
    if table.main is None:
        raise SluiceError("no-snapshot-then", f"{name} has no rows yet", "leave out `--at`")
    return f", snapshot_from_id = {snapshot_at(table, name, at)}"
