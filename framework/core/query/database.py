"""Opens DuckDB databases in memory that read nothing but the tables they are given."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from framework.base.errors import SetupError
from framework.base.home import home
from framework.core.query.errors import duckdb_errors
from framework.sql.standard import identifier, literal
from framework.systems.catalogs import Access

_EXTENSIONS = ("avro", "httpfs", "iceberg")  # each needs those before it
_OFFLINE: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # `from plan` would otherwise find a variable of this program.
    "python_enable_replacements": "false",
    # Reading 84 MB at each query to check signatures takes half a second; pip has checked the hashes of the same files.
    "allow_unsigned_extensions": "true",
}
CLOSED: dict[str, Any] = {**_OFFLINE, "enable_external_access": "false"}


def scratch() -> str:
    """Creates a private folder for data that does not fit into memory. Each process has its own: in a shared folder, processes
    would overwrite each other's files."""
    with suppress(OSError):  # there is no `.sluice`, or it is another user's
        return tempfile.mkdtemp(prefix="duckdb-", dir=home())
    return tempfile.mkdtemp(prefix="duckdb-")


def opened(
    folders: Iterable[str], scratch: str, catalogs: Iterable[str] = (), access: Iterable[Access | None] = (), memory: str = ""
) -> duckdb.DuckDBPyConnection:
    """A database that reads and writes files in these folders alone, some of which need `access`, with `catalogs` for names of tables."""
    database = duckdb.connect(config=_OFFLINE)
    for file in extension_files():
        database.execute(f"LOAD {literal(file)}")
    # Under a name that no namespace has: `memory.t` would be a table of DuckDB's own database.
    database.execute("ATTACH ':memory:' AS \" sluice\"; USE \" sluice\"; DETACH memory; SET TimeZone = 'UTC'")
    for catalog in catalogs:
        database.execute(f"ATTACH ':memory:' AS {identifier(catalog)}")
    for number, login in enumerate(dict.fromkeys(filter(None, access))):
        database.execute(f"CREATE SECRET access_{number} ({_secret(login)})")
    database.execute(f"SET temp_directory = {literal(scratch)}")
    if memory:
        database.execute(f"SET memory_limit = {literal(memory)}")
    database.execute(f"SET allowed_directories = [{', '.join(literal(folder) for folder in dict.fromkeys(folders))}]")
    database.execute("SET enable_external_access = false; SET lock_configuration = true")
    return database


def _secret(access: Access) -> str:
    """A login in DuckDB's SQL. It stays in this process, and DuckDB shows it to no query."""
    parts = {"KEY_ID": access.key, "SECRET": access.secret, "SESSION_TOKEN": access.token, "REGION": access.region}
    options = [f"SCOPE {literal(access.scope)}", *(f"{name} {literal(value)}" for name, value in parts.items() if value)]
    if access.endpoint:
        scheme, _, host = access.endpoint.rstrip("/").partition("://")
        options += [f"ENDPOINT {literal(host)}", f"USE_SSL {'true' if scheme == 'https' else 'false'}"]
    if access.path_style:
        options.append("URL_STYLE 'path'")
    return ", ".join(["TYPE s3", *options])


def interruptible(worker: ThreadPoolExecutor, database: duckdb.DuckDBPyConnection, work: Callable[[], Any]) -> Any:
    """Does work in another thread, so that a Ctrl-C interrupts it: DuckDB itself notices a Ctrl-C only when it is done."""
    future = worker.submit(work)
    with duckdb_errors():
        try:
            return future.result()
        except KeyboardInterrupt:
            database.interrupt()
            wait((future,))
            raise


def extension_files() -> list[str]:
    """The files of the extensions that read Iceberg's tables, in the order in which they can be loaded."""
    return [str(_extension(name)) for name in _EXTENSIONS]


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
        "install `sluice` again in an environment of its own; in a clone of Sluice, `make setup` does",
    )
