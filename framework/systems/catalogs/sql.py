"""A SQLite file, which PyIceberg reads too. It names the current metadata file of each table.

Guarantee: a commit compares the table's metadata file with the one on which it was made, and swaps it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from framework.base.errors import Problem
from framework.base.patience import CATALOG_FILE
from framework.language.options import OptionGroup, option
from framework.language.scalars import Location
from framework.language.storage import Storage as WrittenStorage
from framework.plan import Storage
from framework.plan.storage import SCHEME
from framework.systems.catalogs import DENIED, DISK_FULL, CatalogClient, Cause, ListedMetadata, Moved, TableFiles, _object_store
from framework.systems.catalogs._local_files import is_elsewhere, local_files
from framework.systems.catalogs._s3_files import S3Files

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

EXAMPLE = """\
catalog: lake
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
"""
ABOUT = "The catalog finds tables by name: one SQLite file, which PyIceberg reads too. Their rows are files in the warehouse."

_SCHEME = "sqlite:///"
_IN_FOLDERS = {"io-impl": "sluice.HadoopFiles"}
_SHORT = 5.0  # seconds that another program's commit is waited for, by a look at one table
_NAMED = "AND table_namespace = ? AND table_name = ?"
_LOCKED = Cause("catalog-locked", "the catalog's file is locked", "close it in the other program, and run again")
_opened: dict[tuple[Any, ...], Any] = {}


@dataclass(frozen=True)
class Options(OptionGroup):
    """A SQLite file, which PyIceberg reads too."""

    uri: Location = option(
        "The catalog's file; it is created if it is missing.", example="sqlite:///.sluice/lake.db", aka=["url"]
    )
    warehouse: Location = option(
        "The folder for the tables' files, on this machine or in a bucket: `s3://bucket/path`.", example=".sluice/warehouse",
        aka=["path", "location", "bucket"],
    )  # fmt: skip
    storage: WrittenStorage | None = option(
        "The object store of a warehouse in a bucket.", default=None, example="{region: eu-central-1}", aka=["s3", "object_store"]
    )

    def servers(self) -> Iterable[str | None]:
        return self.storage.servers() if self.storage else ()

    def problems(self) -> Iterable[Problem]:
        if "?" in self.uri:
            message = "`uri` contains a `?`, and Spark would read the text after it as settings of SQLite"
            yield Problem(self.place("uri"), "bad-location", message, "write only the path of the file")
        elif not self.uri.startswith(_SCHEME):
            hint = f"write `{_SCHEME}` and the path of a file, such as `{_SCHEME}.sluice/lake.db`"
            yield Problem(self.place("uri"), "bad-catalog-uri", f"`{self.uri}` is not a SQLite address", hint)
        if self.warehouse.startswith(SCHEME):
            return
        if is_elsewhere(self.warehouse):
            message = f"a warehouse in `{self.warehouse.partition(':')[0]}:` is not in this version of Sluice"
            hint = "write a folder, such as `.sluice/warehouse`, or `s3://bucket/path`"
            yield Problem(self.place("warehouse"), "not-in-this-version", message, hint)
        elif self.storage is not None:
            message = f"`storage` has no effect: `{self.warehouse}` is in no object store"
            yield Problem(self.key_place("storage"), "unused-key", message, "remove it, or write `warehouse: s3://bucket/path`")


def in_folder(name: str, folder: Path) -> Options:
    return Options(uri=f"{_SCHEME}{folder / name}.db", warehouse=str(folder / name))


@dataclass(frozen=True)
class Sql(CatalogClient):
    options: Options

    batch_requests = 0
    does = "is a SQLite file"
    python_extras = ("sql-sqlite",)
    causes: ClassVar[Mapping[str, Cause]] = {
        "database or disk is full": DISK_FULL,
        "readonly database": DENIED,
        "database is locked": _LOCKED,
        "sqlite_busy": _LOCKED,
    }

    @property
    def database(self) -> Path:
        return Path(self.options.uri.removeprefix(_SCHEME)).absolute()

    @cached_property
    def files(self) -> TableFiles:
        if self._storage is None:
            return local_files(self.options.warehouse)
        return S3Files(self.options.warehouse.rstrip("/"), self._storage, self.secrets)

    def files_of(self, identifier: str) -> TableFiles:
        return self.files

    def new_table_folder(self, identifier: str) -> str:
        return f"{self.files.root}/{identifier.replace('.', '/')}"

    def settings(self) -> Mapping[str, str]:
        uri = f"jdbc:sqlite:{self.database}?busy_timeout={CATALOG_FILE * 1000:.0f}"
        store = {**_object_store.FILE_IO, **_object_store.settings(self._storage)} if self._storage else _IN_FOLDERS
        return {"type": "jdbc", "uri": uri, "jdbc.schema-version": "V1", "warehouse": self.files.root, **store}

    def secret_settings(self) -> Mapping[str, str]:
        return _object_store.of_java(self._storage, self.secrets) if self._storage else {}

    @property
    def login(self) -> object | None:
        return _object_store.shared_login(self._storage) if self._storage else None

    @property
    def on_this_machine(self) -> bool:
        return not self._storage

    def for_readers(self) -> Mapping[str, str]:
        return _object_store.for_readers(self._storage) if self._storage else {}

    def keys_for(self, location: str) -> Mapping[str, str]:
        return _object_store.keys_for(self._storage, self.secrets, location) if self._storage else {}

    def jars(self) -> tuple[str, ...]:
        return _object_store.JARS if self._storage else ()

    def where(self) -> str | None:
        return str(self.database) if self.database.exists() else None

    def tables(self) -> tuple[str, ...]:
        rows = self._rows(CATALOG_FILE)
        # A catalog of the older layout has no such column, and no views.
        table_rows = [row for row in rows if "iceberg_type" not in row.keys() or row["iceberg_type"] in (None, "TABLE")]  # noqa: SIM118
        return tuple(f"{row['table_namespace']}.{row['table_name']}" for row in table_rows)

    def current(self, identifier: str) -> ListedMetadata | None:
        rows = self._rows(_SHORT, _NAMED, *identifier.rsplit(".", 1))
        if not rows:
            return None
        location = str(rows[0]["metadata_location"])
        return ListedMetadata(location, self.files.metadata(location), self.files)

    def load(self, identifier: str) -> IcebergTable | None:
        rows = self._rows(CATALOG_FILE, _NAMED, *identifier.rsplit(".", 1))
        if not rows:
            return None
        # PyIceberg's own catalog, which is not needed to read, takes as long again to import.
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io import load_file_io
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable

        location = str(rows[0]["metadata_location"])
        io = load_file_io(dict(self._python_settings), location)
        table_metadata = FromInputFile.table_metadata(io.new_input(location))
        return StaticTable(tuple(identifier.split(".")), table_metadata, location, io, NoopCatalog(self.name))

    def drop(self, identifier: str) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        with suppress(NoSuchTableError):  # another program was faster
            self._by_pyiceberg().drop_table(identifier)

    def show(self, identifier: str, instead_of: ListedMetadata | None, listed: ListedMetadata) -> None:
        if instead_of is None:
            self._register(identifier, listed.location)
            return
        namespace, _, name = identifier.rpartition(".")
        statement = (
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
            "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
        )
        values = (listed.location, instead_of.location, self.name, namespace, name, instead_of.location)
        with self._opened(CATALOG_FILE) as file, file:
            if file.execute(statement, values).rowcount != 1:
                raise Moved

    def _register(self, identifier: str, location: str) -> None:
        from pyiceberg.exceptions import TableAlreadyExistsError

        self.prepare()
        catalog = self._by_pyiceberg()
        catalog.create_namespace_if_not_exists(identifier.rpartition(".")[0])
        try:
            catalog.register_table(identifier, location)
        except TableAlreadyExistsError:
            raise Moved from None

    def prepare(self) -> None:
        self.database.parent.mkdir(parents=True, exist_ok=True)

    def places(self) -> tuple[Path, ...]:
        if self._rows(CATALOG_FILE, of_others=True):  # nothing is its alone
            return ()
        database_files = [self.database.with_name(self.database.name + suffix) for suffix in ("", "-journal", "-wal", "-shm")]
        return (*database_files, *(() if self._storage else (Path(self.files.path(self.files.root)),)))

    @property
    def _storage(self) -> Storage | None:
        """The object store of the warehouse, if it is in one."""
        if not self.options.warehouse.startswith(SCHEME):
            return None
        return _object_store.planned(self.options.storage)

    @property
    def _python_settings(self) -> Mapping[str, str]:
        if not self._storage:
            return {}
        return {**_object_store.settings(self._storage), **_object_store.of_python(self._storage, self.secrets)}

    def _rows(self, patience: float, condition: str = "", *values: str, of_others: bool = False) -> list[sqlite3.Row]:
        """The file's rows about this catalog's tables, or about those of other catalogs."""
        if not self.database.exists():
            return []
        with self._opened(patience) as file:
            file.row_factory = sqlite3.Row
            if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone():
                return []  # there is no table yet
            compares = "<>" if of_others else "="
            return file.execute(
                f"SELECT * FROM iceberg_tables WHERE catalog_name {compares} ? {condition}", (self.name, *values)
            ).fetchall()

    def _opened(self, patience: float) -> closing[sqlite3.Connection]:
        # Not read-only: SQLite then repairs what a killed writer left unfinished.
        return closing(sqlite3.connect(f"{self.database.as_uri()}?mode=rw", uri=True, timeout=patience))

    def _by_pyiceberg(self) -> Any:
        # The name is part of a table's key in the database: another name would see no tables.
        properties = {"uri": f"{_SCHEME}{self.database}", "warehouse": self.files.root, **self._python_settings}
        key = (self.name, *properties.items())
        if key not in _opened:
            from pyiceberg.catalog.sql import SqlCatalog

            _opened[key] = SqlCatalog(self.name, **properties)
        return _opened[key]


CATALOG = Sql
