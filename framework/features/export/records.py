"""The files that an export wrote, by window, with snapshots and numbers of rows. `.sluice/exports` has one file for each export.

An export is named by its `journal_name` here. The exports of an environment are in a folder of its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from framework.base.amounts import counted
from framework.base.home import home, names, private, put, read
from framework.base.spelling import listed
from framework.plan.storage import SCHEME

_FOLDER = "exports"


@dataclass(frozen=True, kw_only=True)
class Record:
    """The last file of a window. `window` is empty for an export of a whole table."""

    window: str
    file: str
    snapshot: int
    rows: int
    bytes: int
    sha256: str
    at: str
    told: tuple[str, ...] = ()  # the ids of the notices about this content that were sent


def by_window(export: str) -> Mapping[str, Record]:
    """The export's records by window, the oldest first; none if the file cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        records = json.loads(read(file(export)))
        return {record["window"]: Record(**{**record, "told": tuple(record.get("told", ()))}) for record in records}
    return {}


def exports() -> list[str]:
    """The exports that have written files, of all environments."""
    return names(home() / _FOLDER)


def add(export: str, record: Record) -> None:
    """Adds a record. If two exports of one name run at once, the record of one of them stays, and both files are whole."""
    path = file(export)
    private(str(path.parent))
    all_records = {**by_window(export), record.window: record}
    put(path, json.dumps([asdict(record) for record in all_records.values()], indent=1))


def left_files() -> Iterator[str]:
    """The files that all exports wrote and that are still there, in words: a line for each folder. An object store is not asked."""
    by_folder: dict[str, set[str]] = {}
    for location in (record.file for export in exports() for record in by_window(export).values()):
        if location.startswith(SCHEME) or Path(location).is_file():
            place = location if location.startswith(SCHEME) else str(Path(location).absolute())
            folder, _, name = place.rpartition("/")
            by_folder.setdefault(folder, set()).add(name)
    for folder, names_ in sorted(by_folder.items()):
        suffix = ", whose store was not asked" if folder.startswith(SCHEME) else ""
        yield f"{counted(len(names_), 'file')} of exports in {folder}{suffix}: {listed(sorted(names_))}"


def file(export: str) -> Path:
    """The file of the export's records."""
    return home() / _FOLDER / f"{export}.json"
