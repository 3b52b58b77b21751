"""Answers to one select over the tables of catalogs, by DuckDB: no JVM.

Guarantee: only the tables that it names are opened, since no function is allowed that reads a file by its path; nothing is written but
scratch files, and nothing outside of the warehouses is read. Values are exact: what Python cannot hold is text.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from framework import catalogs
from framework.engine.iceberg import metadata
from framework.engine.iceberg.at import Moment, snapshot_at
from framework.engine.query.errors import duckdb_errors
from framework.engine.query.values import Reader, reader
from framework.errors import SetupError, SluiceError
from framework.home import home
from framework.model import Catalog
from framework.spelling import did_you_mean

_EXTENSIONS = ("avro", "httpfs", "iceberg")  # each needs those before it
_OFFLINE: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # `from plan` would otherwise find a variable of this program.
    "python_enable_replacements": "false",
    # Reading 84 MB at each query to check signatures takes half a second; pip has checked the hashes of the same files.
    "allow_unsigned_extensions": "true",
}
_CLOSED: dict[str, Any] = {**_OFFLINE, "enable_external_access": "false"}
_CHUNK = 1000  # rows
_ROWS = ("generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest")
"""Functions that stand where a table can, and make rows of their arguments alone. Others read files, settings or another text of SQL."""


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
        casts = ", ".join(read.select(_quoted(each.name)) for each, read in zip(self.columns, self._readers, strict=True))
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
        """In a thread of its own: DuckDB itself hears of Ctrl-C when it is done."""
        future = self._worker.submit(work)
        with duckdb_errors():
            try:
                return future.result()
            except KeyboardInterrupt:
                self._database.interrupt()
                wait((future,))
                raise


def ask(asked: Sequence[Catalog], text: str, at: Moment | None = None) -> Answer:
    """`namespace.table` is a table of the first catalog, `catalog.namespace.table` of any. `at`: the tables as they were at a moment or
    in a snapshot."""
    catalog_tables = {catalog.name: catalogs.of(catalog).tables() for catalog in asked}
    select = _one_select(text, catalog_tables)
    tables = dict.fromkeys(_resolve(name, catalog_tables) for name in _table_names(select))
    scratch = _scratch()
    try:
        answer = Answer(_opened(asked, tuple(tables), scratch, at), select)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    weakref.finalize(answer, shutil.rmtree, scratch, ignore_errors=True)
    return answer


def _one_select(text: str, catalog_tables: Mapping[str, Mapping[str, str]]) -> str:
    with duckdb_errors(first=1):
        statements = duckdb.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        hint = "write one SELECT; `describe NAME` and `summarize NAME` are fine too"
        if len(statements) == 2 and not statements[0].query:
            hint = "say which values become columns: `pivot … on side in ('BUY', 'SELL') using sum(quantity)`"
        raise SluiceError("not-a-select", "a query is one SELECT that changes nothing", hint)
    select = statements[0].query.strip().rstrip(";")
    if re.match(r"show\b", select, re.IGNORECASE):
        raise SluiceError("not-a-select", f"tables are: {_listed(catalog_tables)}", "`describe NAME` shows the columns of one")
    return str(select)


def _table_names(select: str) -> Iterator[tuple[str, ...]]:
    """The tables that a select names, in parts. From DuckDB's parser: `get_table_names` also binds columns, which are not there yet."""
    with duckdb_errors(), duckdb.connect(config=_CLOSED) as bare:
        parsed_select = json.loads(bare.execute("SELECT json_serialize_sql(?)", [select]).fetchone()[0])  # type: ignore[index]
    if parsed_select["error"]:
        raise SluiceError("bad-query", f"{parsed_select['error_type']}: {parsed_select['error_message']}")
    nodes = list(_nodes(parsed_select["statements"]))
    cte_names = {each["key"].lower() for node in nodes for each in node.get("cte_map", {}).get("map", ())}
    for node in nodes:
        if node.get("type") == "TABLE_FUNCTION" and (name := node["function"].get("function_name", "")).lower() not in _ROWS:
            hint = f"a query reads tables by name; functions that return rows are {', '.join(_ROWS)}"
            raise SluiceError("unknown-table", f"there is no table `{name}(…)`", hint)
        if node.get("type") == "BASE_TABLE":
            parts = tuple(part for part in (node["catalog_name"], node["schema_name"], node["table_name"]) if part)
            # A name with a dot or a slash could be a file, where the `with` that has it does not reach.
            if len(parts) > 1 or parts[0].lower() not in cte_names or not parts[0].isidentifier():
                yield parts


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(inner)


@dataclass(frozen=True, kw_only=True)
class _NamedTable:
    catalog: str
    namespace: str
    table: str
    metadata: str
    short: bool  # named without its catalog


def _resolve(parts: tuple[str, ...], catalog_tables: Mapping[str, Mapping[str, str]]) -> _NamedTable:
    """The table of a name, ignoring case as DuckDB does."""
    catalogs = {each.lower(): each for each in catalog_tables}
    catalog = next(iter(catalog_tables), "") if len(parts) < 3 else catalogs.get(parts[0].lower(), "")
    tables = catalog_tables.get(catalog, {})
    name = ".".join(parts[-2:])
    table_name = name if name in tables else next((each for each in tables if each.lower() == name.lower()), None)
    if table_name is None or len(parts) == 1:
        raise _unknown(".".join(parts), catalog_tables)
    namespace, _, table = table_name.rpartition(".")
    return _NamedTable(catalog=catalog, namespace=namespace, table=table, metadata=tables[table_name], short=len(parts) == 2)


def _unknown(name: str, catalog_tables: Mapping[str, Mapping[str, str]]) -> SluiceError:
    if not any(catalog_tables.values()):
        return SluiceError("unknown-table", f"there is no table `{name}`, and no other yet", "`sluice run` creates the tables")
    names = _names(catalog_tables)
    ends = [each for each in names if each.rpartition(".")[2] == name.lower()]
    hint = f"did you mean `{ends[0]}`?" if ends else did_you_mean(name, names, "")
    tables = f"tables are: {_listed(catalog_tables)}"
    return SluiceError(
        "unknown-table", f"there is no table `{name}`", f"{hint} {tables[0].upper()}{tables[1:]}" if hint else tables
    )


_MOST = 30  # names


def _listed(catalog_tables: Mapping[str, Mapping[str, str]]) -> str:
    names = _names(catalog_tables)
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return (", ".join(names[:_MOST]) + more) or "none yet"


def _names(catalog_tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The names of all tables, with the catalog for all but the first."""
    first = next(iter(catalog_tables), "")
    return [
        name if catalog == first else f"{catalog}.{name}" for catalog, tables in catalog_tables.items() for name in sorted(tables)
    ]


def _scratch() -> str:
    """A private folder for data that does not fit into memory. Each process has its own: in a shared one they would overwrite each
    other's files."""
    with suppress(OSError):  # there is none, or it is another user's
        return tempfile.mkdtemp(prefix="duckdb-", dir=home())
    return tempfile.mkdtemp(prefix="duckdb-")


def _opened(
    asked: Sequence[Catalog], tables: Sequence[_NamedTable], scratch: str, at: Moment | None
) -> duckdb.DuckDBPyConnection:
    """A database in memory in which these tables are views."""
    stores = [catalogs.of(catalog).files for catalog in asked]
    folders = [files.path(files.root) for files in stores] + [each.metadata.rsplit("/", 2)[0] for each in tables]
    with duckdb_errors():
        database = duckdb.connect(config=_OFFLINE)
        for name in _EXTENSIONS:
            database.execute(f"LOAD {_text(str(_extension(name)))}")
        # Under a name that no namespace has: `memory.t` would be a table of DuckDB's own database.
        database.execute("ATTACH ':memory:' AS \" sluice\"; USE \" sluice\"; DETACH memory; SET TimeZone = 'UTC'")
        for catalog in {each.catalog for each in tables if not each.short}:
            database.execute(f"ATTACH ':memory:' AS {_quoted(catalog)}")
        database.execute(f"SET temp_directory = {_text(scratch)}")
        database.execute(f"SET allowed_directories = [{', '.join(_text(folder) for folder in dict.fromkeys(folders))}]")
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        for each in tables:
            schema = f"{_quoted(' sluice' if each.short else each.catalog)}.{_quoted(each.namespace)}"
            database.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            view = f"{schema}.{_quoted(each.table)}"
            database.execute(f"CREATE VIEW {view} AS FROM iceberg_scan({_text(each.metadata)}{_as_of(asked, each, at)})")
    return database


def _as_of(asked: Sequence[Catalog], named: _NamedTable, at: Moment | None) -> str:
    """The argument of a scan for the tables as they were."""
    if at is None:
        return ""
    name = f"{named.namespace}.{named.table}"
    table = metadata.read(next(each for each in asked if each.name == named.catalog), name)
    if table is None or table.main is None:
        raise SluiceError("no-snapshot-then", f"{name} has no rows yet", "leave out `--at`")
    return f", snapshot_from_id = {snapshot_at(table, name, at)}"


def _extension(name: str) -> Path:
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    folders = (package.submodule_search_locations if package else None) or []
    for folder in folders:
        file = Path(folder, "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        if file.exists():
            return file
    raise SetupError(
        "extension-missing",
        f"the package duckdb-extension-{name} {duckdb.__version__} is not installed",
        "`make setup` in the clone of Sluice installs it",
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
