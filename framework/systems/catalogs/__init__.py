"""The catalogs, one file each: `type: sql` of a spec is the file `sql.py`. Here is what the rest of Sluice asks a catalog.

A catalog's file has `Options`, what a spec says of it, `CATALOG`, its class, and `EXAMPLE`, a document. The one that new projects and
tests of pipelines get also has `in_folder` and `ABOUT`.
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
ANY_TIME = datetime.max.replace(tzinfo=timezone.utc)  # of files, however young
PROBE = ".sluice-doctor-"  # how the names of files begin that are written to try it


@dataclass(frozen=True)
class Cause:
    """Why something failed, where what runs Sluice is to blame."""

    code: str
    says: str
    hint: str


class RequestFailed(Exception):
    """A catalog that is a server did not do as it was asked."""

    def __init__(self, says: str, hint: str = "") -> None:
        super().__init__(says)
        self.hint = hint


class Moved(Exception):
    """Under a name is something else than when it was read."""


DISK_FULL = Cause("disk-full", "the disk is full", "free some space and run again")
DENIED = Cause("permission-denied", "access is denied", "give the user who runs Sluice the missing permission, and run again")


@dataclass(frozen=True, kw_only=True)
class Access:
    """A login to files, for another reader of them in this process."""

    scope: str  # what the names of these files begin with
    endpoint: str | None  # None: that of AWS
    region: str | None
    key: str = field(repr=False)
    secret: str = field(repr=False)
    token: str | None = field(repr=False)
    path_style: bool


@dataclass(frozen=True)
class Files(ABC):
    """The files of tables, wherever they are. A location is what Iceberg calls a file or a folder, such as `file:/lake/shop/orders`."""

    root: str  # the location of the warehouse; empty if nobody but the catalog knows it

    @abstractmethod
    def path(self, location: str) -> str:
        """As people write it, and as DuckDB reads it."""

    @abstractmethod
    def read(self, location: str) -> bytes:
        """Raises OSError where it cannot be read."""

    @abstractmethod
    def write(self, location: str, content: bytes) -> None:
        """A new file. Raises OSError where it cannot be written."""

    @abstractmethod
    def folders(self, *locations: str) -> tuple[str, ...]:
        """Those of these folders in which files may be deleted: metadata can name any place."""

    @abstractmethod
    def split_deletable(self, locations: Iterable[str], folders: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that may be deleted, since they are in one of these `folders`, and those that stay."""

    @abstractmethod
    def existing(self, locations: Iterable[str]) -> set[str]:
        """Those of which there is a file."""

    @abstractmethod
    def size(self, files: Iterable[str]) -> int:
        """The bytes of files that may be deleted."""

    @abstractmethod
    def delete(self, files: Iterable[str], folder: str) -> None:
        """Deletes files that may be deleted, and what this leaves empty of a table's folder."""

    @abstractmethod
    def older(self, location: str, than: datetime = ANY_TIME, start: str = "") -> Iterator[str]:
        """The files in a folder that were last written before that, and whose names begin so."""

    @abstractmethod
    def left(self, folders: Iterable[str]) -> int:
        """The number of files in folders."""

    @abstractmethod
    def probe(self, folder: str) -> None:
        """Writes a small file there, reads, lists and deletes it. Raises `RequestFailed` or OSError, which says what was not allowed."""

    @abstractmethod
    def around(self, location: str) -> str:
        """The folder in which all files of a table with this location are, with those of other tables."""

    def access(self, location: str) -> Access | None:
        """The settings that another reader needs besides the name of a file; None if the name is enough."""
        return None

    def metadata(self, location: str) -> Mapping[str, Any]:
        """The content of a metadata file."""
        data = self.read(location)
        content: Mapping[str, Any] = json.loads(gzip.decompress(data) if ".gz." in location else data)
        return content


@dataclass(frozen=True)
class Current:
    """A table's current metadata."""

    location: str
    document: Mapping[str, Any]
    files: Files


@dataclass(frozen=True)
class Catalog(ABC):
    """A catalog with its options. What is asked without a JVM raises whatever its libraries raise: the engine makes `CatalogAway` of it.
    A table is called `namespace.table`."""

    name: str
    options: Any
    secrets: model.SecretStore = field(default_factory=model.SecretStore)

    writes_metadata: ClassVar[bool] = False
    """Whether a server writes the tables' metadata files."""
    checks_all: ClassVar[bool] = True
    """Whether a commit is refused after any other one. Otherwise only after one that moved main, if it moves main itself."""
    does: ClassVar[str]  # completes "`sql` …" in the help of `type`
    python_extras: ClassVar[tuple[str, ...]] = ()  # of the package PyIceberg, for who reads it in Python
    causes: ClassVar[Mapping[str, Cause]] = {}  # by lower-case text in what its errors say

    @abstractmethod
    def files_of(self, identifier: str) -> Files:
        """The files of a table, which may not exist."""

    def new_table_folder(self, identifier: str) -> str | None:
        """The location that a table gets when it is created; None where a server decides it."""
        return None

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Spark's settings, as properties of Iceberg's catalog, such as `type`. Everybody who sees Spark's settings sees them."""

    def secret_settings(self) -> Mapping[str, str]:
        """The same, for the JVM alone."""
        return {}

    @property
    def secrets_name(self) -> str:
        """The name under which the JVM has them: another catalog with the same `name` does not get them."""
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
        """Keys with which a reader can read the files of this table, for an hour; none if there is no role of which they are."""
        return {}

    def jars(self) -> tuple[str, ...]:
        """The sets of jars.lock that Spark needs for it, besides its own."""
        return ()

    @abstractmethod
    def where(self) -> str | None:
        """Where its names of tables are, for people; None as long as nothing is there."""

    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""

    @abstractmethod
    def current(self, identifier: str) -> Current | None:
        """A table's current metadata; None where there is no such table. Asked often, so PyIceberg, which takes long to import, is not
        used here."""

    @abstractmethod
    def load(self, identifier: str) -> IcebergTable | None:
        """The table by PyIceberg, for its rows and lists of files; None where there is no such table."""

    @abstractmethod
    def drop(self, identifier: str) -> None:
        """Forgets a table. Its files stay."""

    def show(self, identifier: str, instead_of: Current | None, listed: Current) -> None:
        """Lists a table of another catalog, as this metadata has it. Raises `Moved` if the name has other metadata than `instead_of` by
        now. A catalog that writes metadata itself gets a file for a new name only."""
        raise RequestFailed("it cannot list the tables of another catalog", "name another catalog under `publish`")

    def probe(self, identifier: str) -> None:  # noqa: B027 - most cannot refuse this
        """Tries without a change whether a table of this name may be created and changed. Raises `RequestFailed` with what is missing."""

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Creates what Spark needs before it starts."""

    def places(self) -> tuple[Path, ...]:
        """All that it has on this machine, to be deleted as a whole; nothing of a catalog that is elsewhere."""
        return ()


def of(catalog: model.Catalog) -> Catalog:
    """The component of a plan's catalog."""
    component: type[Catalog] = CATALOGS.load(catalog.type).CATALOG
    return component(catalog.name, catalog.options, catalog.secrets)


def causes() -> dict[str, Cause]:
    """Of the errors of all catalogs."""
    return {text: cause for file in CATALOGS.load_all().values() for text, cause in file.CATALOG.causes.items()}


def for_new_projects() -> ModuleType:
    """The file of the catalog that needs nothing but a folder."""
    return next(file for file in CATALOGS.load_all().values() if hasattr(file, "in_folder"))


def in_folder(name: str, folder: Path) -> model.Catalog:
    """A catalog that has all its files in a folder of this machine."""
    file = for_new_projects()
    return model.Catalog(name, file.__name__.rpartition(".")[2], file.in_folder(name, folder))


def document(catalog: model.Catalog) -> str:
    """As a spec says it."""
    options = {field.name: getattr(catalog.options, field.name) for field in dataclasses.fields(catalog.options)}
    written = {"catalog": catalog.name, "type": catalog.type, **options}
    return "".join(f"{key}: {value}\n" for key, value in written.items() if key not in ("node", "gaps") and value is not None)
