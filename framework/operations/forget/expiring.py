"""Files of expired snapshots. They are recorded before the snapshots expire, so that a process that dies in between leaves none behind."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from framework.base.home import home, private, put, read
from framework.core.iceberg import deletable_files, metadata, removal
from framework.core.iceberg.lake import TableStore
from framework.core.maintain import file_lists, orphans, others
from framework.plan import Pipeline

_FOLDER = "forget"


@dataclass(frozen=True)
class Deleted:
    """The numbers of deleted and of remaining files, and the tables or catalogs that still name the remaining ones."""

    files: int
    remaining: int
    named_by: tuple[str, ...] = ()


class Expiring:
    """The files of one table."""

    def __init__(self, lake: TableStore, pipeline: Pipeline, name: str, uuid: str) -> None:
        self.lake, self.pipeline, self.name = lake, pipeline, name
        self.note = home() / _FOLDER / f"{uuid}.json"

    def remember(self) -> Set[str]:
        """Records all files of the table, with those that an earlier process recorded, and returns them."""
        private(_FOLDER)
        table = metadata.read(self.pipeline.table.catalog, self.name)
        files = self._named() | set(_noted(self.note)) | (file_lists.all_files(table) if table else set())
        put(self.note, json.dumps(sorted(files)))
        return files

    def delete(self, files: Set[str]) -> Deleted:
        """Deletes the files that the table no longer names, unless others name them. Files that stay remain recorded."""
        table = metadata.read(self.pipeline.table.catalog, self.name)
        loaded_table = self.lake.load(self.name)
        if table is None or loaded_table is None:
            return Deleted(0, 0)
        expired_files = files - self._named()
        existing_files = table.files.existing(expired_files)
        other_files = others.in_folder(table) if existing_files else []
        foreign_files = others.named(table, other_files)
        file_store, folders = removal.own_files(self.lake, loaded_table)
        deletable_files.delete(file_store, existing_files - foreign_files if foreign_files is not None else (), folders)
        remaining_files = table.files.existing(existing_files)
        if remaining_files:
            put(self.note, json.dumps(sorted(remaining_files)))
        else:
            self.note.unlink(missing_ok=True)
        return Deleted(
            len(expired_files) - len(remaining_files),
            len(remaining_files),
            tuple(others.naming(table, other_files, remaining_files)) if remaining_files else (),
        )

    def _named(self) -> set[str]:
        table = metadata.read(self.pipeline.table.catalog, self.name)
        assert table is not None
        return {table.files.path(file) for file in orphans.named(self.lake, self.pipeline, self.name)}


def _noted(note: Path) -> list[str]:
    try:
        names = json.loads(read(note))
    except (OSError, ValueError, RecursionError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
