"""A folder that is its own catalog, as Hadoop's. A toy: all that a catalog needs is in this file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.base.errors import Problem
from framework.language.options import OptionGroup, option
from framework.language.scalars import Location
from framework.systems.catalogs import CatalogClient, ListedMetadata
from framework.systems.catalogs._local_files import LocalFiles, is_elsewhere, local_files

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

EXAMPLE = """\
catalog: lake
type: hadoop_folder
folder: .sluice/tables
"""
_HINT = "version-hint.text"


@dataclass(frozen=True)
class Options(OptionGroup):
    """A folder that has a folder for each namespace, and in it one for each table."""

    folder: Location = option("The folder of the tables.", example=".sluice/tables", aka=["warehouse"])

    def problems(self) -> Iterable[Problem]:
        if is_elsewhere(self.folder):
            yield Problem(self.place("folder"), "bad-location", f"`{self.folder}` is no folder", "write its path")


@dataclass(frozen=True)
class HadoopFolder(CatalogClient):
    options: Options

    does = "is a folder of tables"

    @property
    def files(self) -> LocalFiles:
        return local_files(self.options.folder)

    def files_of(self, identifier: str) -> LocalFiles:
        return self.files

    @property
    def folder(self) -> Path:
        return Path(self.files.path(self.files.root))

    def settings(self) -> Mapping[str, str]:
        return {"type": "hadoop", "warehouse": self.files.root}

    def where(self) -> str | None:
        return str(self.folder) if self.folder.exists() else None

    def tables(self) -> tuple[str, ...]:
        return tuple(".".join(hint.parts[-4:-2]) for hint in self.folder.glob(f"*/*/metadata/{_HINT}"))

    def current(self, identifier: str) -> ListedMetadata | None:
        file = self._metadata(identifier)
        return ListedMetadata(f"file:{file}", self.files.metadata(str(file)), self.files) if file else None

    def load(self, identifier: str) -> IcebergTable | None:
        from pyiceberg.table import StaticTable, Table

        file = self._metadata(identifier)
        if file is None:
            return None
        static_table = StaticTable.from_metadata(file.as_uri())
        return Table(
            (*identifier.split("."),),
            static_table.metadata,
            static_table.metadata_location,
            static_table.io,
            static_table.catalog,
        )

    def drop(self, identifier: str) -> None:
        """Deletes the metadata, which makes a folder a table."""
        folder = self.folder.joinpath(*identifier.split("."), "metadata")
        for path in [path for pattern in ("*.metadata.json*", "*version-hint.text*") for path in folder.glob(pattern)]:
            path.unlink()

    def places(self) -> tuple[Path, ...]:
        return (self.folder,)

    def _metadata(self, identifier: str) -> Path | None:
        """The newest metadata file. The hint is written after it, so the hint can be too old."""
        folder = self.folder.joinpath(*identifier.split("."), "metadata")
        if not (folder / _HINT).exists():
            return None
        version = int((folder / _HINT).read_text())
        while (folder / f"v{version + 1}.metadata.json").exists():
            version += 1
        return folder / f"v{version}.metadata.json"


CATALOG = HadoopFolder
