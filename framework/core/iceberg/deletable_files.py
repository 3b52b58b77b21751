"""The files of attempts that may be deleted. Metadata can name any file, so its word is not enough.

Guarantee: a file is deleted only if it lies in a folder of its table, and that in the catalog's warehouse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from framework.base.errors import SluiceError
from framework.core.iceberg import metadata
from framework.plan import Pipeline
from framework.systems.catalogs import MayNotDelete, TableFiles

_SECOND = re.compile(r"(.+)__[0-9a-f]{8}")  # the folder of a rebuild's second table: the first one's name and a suffix


def of_first(location: str) -> str:
    """The location of the table for which a rebuild created a second one, from the location of the second one."""
    match = _SECOND.fullmatch(location.rstrip("/"))
    return match[1] if match else location


def of_attempts(files: TableFiles, location: str, data: str | None) -> tuple[str, ...]:
    """The folders in which attempts write. A rebuild's second table has its data in the folder of the first."""
    folder = PurePosixPath(files.path(location))
    match = _SECOND.fullmatch(folder.name)
    is_second = data is not None and match is not None and PurePosixPath(files.path(data)) == folder.with_name(match[1]) / "data"
    return files.folders(location, *([data] if is_second and data else []))


def delete_or_leave(files: TableFiles, locations: Iterable[str], folders: Iterable[str]) -> int:
    """Deletes files as `delete` does. A login that may not delete leaves them: `sluice maintain` deletes what no commit names."""
    try:
        return delete(files, locations, folders)
    except MayNotDelete:
        return 0


def require_right(pipeline: Pipeline) -> None:
    """Raises if the login may not delete files of the pipeline's table: what a person asks for is not done in part."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if table is not None and not table.files.may_delete(str(table.document["location"])):
        message = f"the login to the files of {pipeline.table.identifier} may not delete files"
        hint = f"use a login that may: `sluice access aws-policy {pipeline.name}` prints the policy `maintain`"
        raise SluiceError("may-not-delete", message, hint)


def delete(files: TableFiles, locations: Iterable[str], folders: Iterable[str]) -> int:
    """Deletes those of the files at `locations` that lie in `folders`, and returns their number. No other file is deleted."""
    folders = tuple(folders)
    inside, _ = files.split_deletable(locations, folders)
    by_folder: dict[str, list[str]] = {}
    for file in inside:
        folder = next((folder for folder in folders if file.startswith(f"{folder}/")), file.rpartition("/")[0])
        by_folder.setdefault(folder, []).append(file)
    for folder, folder_files in by_folder.items():
        files.delete(folder_files, folder)
    return len(inside)


def names_nothing_else(files: TableFiles, folders: Iterable[str], manifest_list: str, main: str) -> bool:
    """Whether all files that a snapshot names, and main does not, lie in `folders`."""
    try:
        own_manifests, main_manifests = (
            {record["manifest_path"] for record in metadata.records(files, location)} for location in (manifest_list, main)
        )
        data = [
            entry["data_file"]["file_path"]
            for manifest in own_manifests - main_manifests
            for entry in metadata.records(files, manifest)
        ]
    except (OSError, ValueError, KeyError):
        return False
    return not files.split_deletable((manifest_list, *(own_manifests - main_manifests), *data), folders)[1]
