"""Files of expired snapshots. They are written down before the snapshots go, so that a process that dies in between leaves none behind."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from framework.base.home import home, private, put, read
from framework.core.iceberg import deletable_files, metadata, removal
from framework.core.iceberg.lake import Lake
from framework.core.maintain import orphans, others
from framework.plan import Pipeline

_FOLDER = "forget"


@dataclass(frozen=True)
class Deleted:
    """The number of deleted files, and the reasons why others stay: whatever else names them."""

    files: int
    left: int
    named_by: tuple[str, ...] = ()


class Expiring:
    """The files of one table."""

    def __init__(self, lake: Lake, pipeline: Pipeline, name: str, uuid: str) -> None:
        self.lake, self.pipeline, self.name = lake, pipeline, name
        self.note = home() / _FOLDER / f"{uuid}.json"

    def remember(self) -> Set[str]:
        """All files of the table now, and those that an earlier process wrote down."""
        private(_FOLDER)
        files = self._named() | set(_noted(self.note))
        put(self.note, json.dumps(sorted(files)))
        return files

    def delete(self, files: Set[str]) -> Deleted:
        """Deletes those that the table does not name any more, unless others do. What stays is still written down."""
        table = metadata.read(self.pipeline.table.catalog, self.name)
        loaded = self.lake.load(self.name)
        if table is None or loaded is None:
            return Deleted(0, 0)
        expired = files - self._named()
        there = table.files.existing(expired)
        other_files = others.in_folder(table) if there else []
        by_others = others.named(table, other_files)
        its_files, folders = removal.own_files(self.lake, loaded)
        deletable_files.delete(its_files, there - by_others if by_others is not None else (), folders)
        left = table.files.existing(there)
        if left:
            put(self.note, json.dumps(sorted(left)))
        else:
            self.note.unlink(missing_ok=True)
        return Deleted(len(expired) - len(left), len(left), tuple(others.naming(table, other_files, left)) if left else ())

    def _named(self) -> set[str]:
        table = metadata.read(self.pipeline.table.catalog, self.name)
        assert table is not None
        return {table.files.path(each) for each in orphans.named(self.lake, self.pipeline, self.name)}


def _noted(note: Path) -> list[str]:
    try:
        names = json.loads(read(note))
    except (OSError, ValueError, RecursionError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
