"""Files of a table that metadata of others names: of another catalog, which may have registered the table, or of a table in its folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from typing import Any

from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.model import FOLLOWED

METADATA = ".metadata.json"
DELTA = "_delta_log"
ANY_TIME = datetime.max.replace(tzinfo=timezone.utc)  # of files, however young


def named(table: Metadata, there: Collection[str]) -> frozenset[str] | None:
    """Paths that others name, among whose files these are; None where that is not known: a Delta log, or a damaged metadata file."""
    if any(DELTA in each for each in there) and not shows_delta(table):
        return None
    files = table.files
    own = {files.path(each["metadata-file"]) for each in table.document.get("metadata-log") or ()} | {files.path(table.file)}
    paths: set[str] = set()
    try:
        for other in {each for each in there if each.endswith(METADATA)} - own:
            paths |= {files.path(each) for each in _named_by(Metadata(other, files.metadata(other), files))}
    except ValueError:
        return None
    return frozenset(paths)


def shows_delta(table: Metadata) -> bool:
    """Whether a Delta log is Sluice's own: it shows a snapshot that a tag keeps."""
    return any(name.startswith(f"{FOLLOWED}delta") for name in table.refs)


def beside(table: Metadata) -> list[str]:
    """The metadata files of a table's own folder, and the files of a Delta log."""
    location = str(table.document["location"])
    return [each for name in ("metadata", DELTA) for each in table.files.older(f"{location}/{name}", ANY_TIME)]


def _named_by(table: Metadata) -> Iterator[str]:
    for snapshot in table.snapshots.values():
        yield snapshot["manifest-list"]
        for manifest in _there(table, snapshot["manifest-list"]):
            yield manifest["manifest_path"]
            yield from (entry["data_file"]["file_path"] for entry in _there(table, manifest["manifest_path"]))
    yield from of_document(table.document)


def _there(table: Metadata, location: str) -> list[Any]:
    """A list of files, if it is there: an old metadata file may name expired ones."""
    try:
        return metadata.records(table.files, location)
    except OSError:
        return []


def of_document(document: Any) -> Iterator[str]:
    """The files of statistics that a metadata file names."""
    for kind in ("statistics", "partition-statistics"):
        yield from (each["statistics-path"] for each in document.get(kind) or ())
