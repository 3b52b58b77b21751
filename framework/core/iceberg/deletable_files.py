"""The files of attempts that may be deleted. Metadata can name any file, so its word is not enough.

Guarantee: a file is deleted only if it lies in a folder of its table, and that in the catalog's warehouse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from framework.core.iceberg import metadata
from framework.systems.catalogs import Files

_SECOND = re.compile(r"(.+)__[0-9a-f]{8}")  # the folder of a rebuild's second table, behind that of the first


def of_first(location: str) -> str:
    """The location of the table for which a rebuild created a second one, by the location of that."""
    match = _SECOND.fullmatch(location.rstrip("/"))
    return match[1] if match else location


def of_attempts(files: Files, location: str, data: str | None) -> tuple[str, ...]:
    """The folders in which attempts write. A rebuild's second table has its data in the folder of the first."""
    own = PurePosixPath(files.path(location))
    first = _SECOND.fullmatch(own.name)
    second = data is not None and first is not None and PurePosixPath(files.path(data)) == own.with_name(first[1]) / "data"
    return files.folders(location, *([data] if second and data else []))


def delete(files: Files, locations: Iterable[str], within: Iterable[str]) -> int:
    """Deletes those of these files that lie in these folders; how many."""
    within = tuple(within)
    inside, _ = files.split_deletable(locations, within)
    for file in inside:
        files.delete([file], next((each for each in within if file.startswith(f"{each}/")), file.rpartition("/")[0]))
    return len(inside)


def names_nothing_else(files: Files, within: Iterable[str], manifest_list: str, main: str) -> bool:
    """Whether all files that a snapshot names, and main does not, lie in these folders."""
    try:
        own, others = ({each["manifest_path"] for each in metadata.records(files, listed)} for listed in (manifest_list, main))
        data = [entry["data_file"]["file_path"] for manifest in own - others for entry in metadata.records(files, manifest)]
    except (OSError, ValueError, KeyError):
        return False
    return not files.split_deletable((manifest_list, *(own - others), *data), within)[1]
