"""The files that an export wrote, by window, with snapshots and numbers of rows. In `.sluice/exports`, a file for each export.

Here, an export is named by its `recorded_as`: those of an environment are in a folder of its name.
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
    told: tuple[str, ...] = ()  # the notices about this very content that were sent


def of(export: str) -> Mapping[str, Record]:
    """By window, the oldest first. A file that cannot be read is none."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        records = json.loads(read(file(export)))
        return {each["window"]: Record(**{**each, "told": tuple(each.get("told", ()))}) for each in records}
    return {}


def exports() -> list[str]:
    """The exports that have written files, of all environments."""
    return names(home() / _FOLDER)


def add(export: str, record: Record) -> None:
    """Two exports of one name at once leave the record of one of them, and both files whole."""
    path = file(export)
    private(str(path.parent))
    kept = {**of(export), record.window: record}
    put(path, json.dumps([asdict(each) for each in kept.values()], indent=1))


def left_files() -> Iterator[str]:
    """The files that all exports wrote and that are still there, in words: a line for each folder. An object store is not asked."""
    by_folder: dict[str, set[str]] = {}
    for written in (record.file for export in exports() for record in of(export).values()):
        if written.startswith(SCHEME) or Path(written).is_file():
            place = written if written.startswith(SCHEME) else str(Path(written).absolute())
            folder, _, name = place.rpartition("/")
            by_folder.setdefault(folder, set()).add(name)
    for folder, names_ in sorted(by_folder.items()):
        asked = ", whose store was not asked" if folder.startswith(SCHEME) else ""
        yield f"{counted(len(names_), 'file')} of exports in {folder}{asked}: {listed(sorted(names_))}"


def file(export: str) -> Path:
    """Where its records are."""
    return home() / _FOLDER / f"{export}.json"
