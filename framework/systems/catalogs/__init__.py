"""The catalogs, one file each: `type: sql` of a spec is the file `sql.py`. This module has the interface of all catalogs.

A catalog's file has `Options`, the options of its document; `CATALOG`, its class; and `EXAMPLE`, a document. The catalog that new
projects and tests of pipelines use also has `in_folder` and `ABOUT`.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from framework import plan as model
from framework.base.components import components_in

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

CATALOGS = components_in(__name__)
ANY_TIME = datetime.max.replace(tzinfo=timezone.utc)  # a time limit that all files meet
PROBE = ".sluice-doctor-"  # the beginning of the names of files that only test whether writing works


@dataclass(frozen=True)
class Cause:
    """The cause of a failure that lies in the machine or the account that runs Sluice."""

    code: str
    says: str
    hint: str


class RequestFailed(Exception):
    """A catalog's server refused a request or did not answer it. `of_all`: it does so whatever table is asked for."""

    of_all = True

    def __init__(self, says: str, hint: str = "") -> None:
        super().__init__(says)
        self.hint = hint


class Moved(Exception):
    """Another program has changed what a name stands for since the name was read."""


class MayNotDelete(PermissionError):
    """The login may do other things with files, and not delete them."""


DISK_FULL = Cause("disk-full", "the disk is full", "free some space and run again")
DENIED = Cause("permission-denied", "access is denied", "give the user who runs Sluice the missing permission, and run again")


@dataclass(frozen=True, kw_only=True)
class Access:
    """A login to files, for another reader of them in this process."""

    scope: str  # the beginning of the names of these files
    endpoint: str | None  # None: that of AWS
    region: str | None
    key: str = field(repr=False)
    secret: str = field(repr=False)
    token: str | None = field(repr=False)
    path_style: bool


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Some files of a store."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class TableFiles(ABC):
    """The files of tables, wherever they are. A location is what Iceberg calls a file or a folder, such as `file:/lake/shop/orders`."""

    root: str  # the location of the warehouse; empty if nobody but the catalog knows it

    @abstractmethod
    def path(self, location: str) -> str:
        """The path of a location, as people write it and as DuckDB reads it."""

    @abstractmethod
    def read(self, location: str) -> bytes:
        """The content of a file. Raises OSError if it cannot be read."""

    @abstractmethod
    def write(self, location: str, content: bytes) -> None:
        """Writes a new file. Raises OSError if it cannot be written."""

    @abstractmethod
    def folders(self, *locations: str) -> tuple[str, ...]:
        """The folders among `locations` in which files may be deleted: metadata can name any place."""

    @abstractmethod
    def split_deletable(self, locations: Iterable[str], folders: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that may be deleted, since they are in one of these `folders`, and those that stay."""

    @abstractmethod
    def existing(self, locations: Iterable[str]) -> set[str]:
        """The locations that have a file."""

    @abstractmethod
    def size(self, files: Iterable[str]) -> int:
        """The bytes of files that may be deleted."""

    @abstractmethod
    def delete(self, files: Iterable[str], folder: str) -> None:
        """Deletes files that may be deleted, and the folders of a table that become empty."""

    @abstractmethod
    def older(self, location: str, time_limit: datetime = ANY_TIME, start: str = "") -> Iterator[str]:
        """The files in a folder that were last written before `time_limit` and whose names begin with `start`."""

    @abstractmethod
    def stored(self, folders: Iterable[str]) -> Stored:
        """The number and size of all files in folders. Raises OSError if they cannot be listed."""

    def may_delete(self, folder: str) -> bool:
        """Whether the login may delete files in the folder. Others are kept for a login that may."""
        return True

    @abstractmethod
    def probe(self, folder: str) -> bool:
        """Writes, reads and lists a small file in the folder. Whether the login may delete it, too. Raises `RequestFailed` or OSError with
        what else was not allowed."""

    @abstractmethod
    def around(self, location: str) -> str:
        """The folder that holds all files of a table with this location, and files of other tables."""

    def access(self, location: str) -> Access | None:
        """The login that another reader needs besides the name of a file; None if the name is enough."""
        return None

    def metadata(self, location: str) -> Mapping[str, Any]:
        """The content of a metadata file."""
        data = self.read(location)
        content: Mapping[str, Any] = json.loads(gzip.decompress(data) if ".gz." in location else data)
        return content


@dataclass(frozen=True)
class ListedMetadata:
    """A table's current metadata."""

    location: str
    document: Mapping[str, Any]
    files: TableFiles


@dataclass(frozen=True)
class CatalogClient(ABC):
    """A catalog with its options. Methods that need no JVM raise the errors of their libraries, of which the core makes
    `CatalogAway`. A table's identifier is `namespace.table`."""

    name: str
    options: Any
    secrets: model.SecretStore = field(default_factory=model.SecretStore)

    writes_metadata: ClassVar[bool] = False
    """Whether a server writes the tables' metadata files."""
    checks_all: ClassVar[bool] = True
    """Whether a commit is refused if any other commit came before it. Otherwise it is refused only if both commits move main."""
    batch_requests: ClassVar[int]
    """Requests to a server by which a batch asks for its table and commits it."""
    does: ClassVar[str]  # completes "`sql` …" in the help of `type`
    python_extras: ClassVar[tuple[str, ...]] = ()  # of the package PyIceberg, for readers in Python
    causes: ClassVar[Mapping[str, Cause]] = {}  # by lower-case text of its errors

    @abstractmethod
    def files_of(self, identifier: str) -> TableFiles:
        """The files of a table, which may not exist."""

    def new_table_folder(self, identifier: str) -> str | None:
        """The location that a table gets when it is created; None where a server decides it."""
        return None

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Spark's settings, as properties of Iceberg's catalog, such as `type`. They are as visible as Spark's other settings."""

    def secret_settings(self) -> Mapping[str, str]:
        """Properties of Iceberg's catalog that only the JVM gets, since they hold secrets."""
        return {}

    @property
    def secrets_name(self) -> str:
        """The name under which the JVM keeps the secret settings: another catalog with the same `name` does not get them."""
        text = json.dumps([self.name, sorted(self.settings().items())])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def on_this_machine(self) -> bool:
        """Whether the tables' files are in folders of this machine."""
        return True

    @property
    def login(self) -> object | None:
        """The login that all catalogs of a plan must share, where they have one: Java keeps one for all."""
        return None

    def for_readers(self) -> Mapping[str, str]:
        """The settings by which readers of a served catalog read the tables' files."""
        return {}

    def keys_for(self, location: str) -> Mapping[str, str]:
        """Keys with which a reader can read the files of this table for an hour; none if the catalog has no role that gives such
        keys."""
        return {}

    def jars(self) -> tuple[str, ...]:
        """The sets of jars.lock that Spark needs for the catalog, besides its own."""
        return ()

    @abstractmethod
    def where(self) -> str | None:
        """The place of the tables' names, for people; None as long as nothing is there."""

    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""

    @abstractmethod
    def current(self, identifier: str) -> ListedMetadata | None:
        """A table's current metadata; None if there is no such table. It is called often, so it does not use PyIceberg, which
        takes long to import."""

    @abstractmethod
    def load(self, identifier: str) -> IcebergTable | None:
        """The table as PyIceberg has it, for its rows and lists of files; None if there is no such table."""

    @abstractmethod
    def drop(self, identifier: str) -> None:
        """Removes a table from the catalog. Its files stay."""

    def show(self, identifier: str, instead_of: ListedMetadata | None, listed: ListedMetadata) -> None:
        """Lists a table of another catalog with the metadata `listed`. Raises `Moved` if the name no longer has the metadata
        `instead_of`. A catalog that writes metadata itself gets a file only for a new name."""
        raise RequestFailed("it cannot list the tables of another catalog", "name another catalog under `publish`")

    def probe(self, identifier: str) -> None:  # noqa: B027 - most cannot refuse this
        """Checks whether a table of this name may be created and changed. Raises `RequestFailed` with what is missing."""

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Creates what Spark needs before it starts."""

    def places(self) -> tuple[Path, ...]:
        """The files and folders of the catalog on this machine, which can be deleted as a whole; none for a catalog that is
        elsewhere."""
        return ()


def client_of(catalog: model.Catalog) -> CatalogClient:
    """The component of a plan's catalog."""
    component: type[CatalogClient] = CATALOGS.load(catalog.type).CATALOG
    return component(catalog.name, catalog.options, catalog.secrets)


def causes() -> dict[str, Cause]:
    """The causes of the errors of all catalogs."""
    return {text: cause for file in CATALOGS.load_all().values() for text, cause in file.CATALOG.causes.items()}


def for_new_projects() -> ModuleType:
    """The file of the catalog that needs nothing but a folder."""
    return next(file for file in CATALOGS.load_all().values() if hasattr(file, "in_folder"))


def in_folder(name: str, folder: Path) -> model.Catalog:
    """A catalog that has all its files in a folder of this machine."""
    file = for_new_projects()
    return model.Catalog(name, file.__name__.rpartition(".")[2], file.in_folder(name, folder))


def document(catalog: model.Catalog) -> str:
    """The catalog's document, as YAML."""
    options = {field.name: getattr(catalog.options, field.name) for field in dataclasses.fields(catalog.options)}
    written = {"catalog": catalog.name, "type": catalog.type, **options}
    return "".join(f"{key}: {value}\n" for key, value in written.items() if key not in ("node", "gaps") and value is not None)
