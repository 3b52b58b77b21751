"""Files of a table that metadata of others names: of another catalog, which may have registered the table, or of a table in its folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from framework.core.iceberg import metadata, published
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.plan.follower import is_follower_tag

METADATA = ".metadata.json"
DELTA = "_delta_log"


def named(table: Metadata, there: Collection[str]) -> frozenset[str] | None:
    """Paths that others name, among whose files these are; None where that is not known: a Delta log, or a damaged metadata file."""
    if any(DELTA in each for each in there) and not shows_delta(table):
        return None
    files, own = table.files, own_of(table)
    paths: set[str] = set()
    try:
        for other in {each for each in there if each.endswith(METADATA)} - own:
            document = files.metadata(other)
            same = document.get("table-uuid") == table.uuid
            # No other catalog shows a table of bad rows: what its log of versions has no more is its own.
            if protocol.OF not in table.properties or not same:
                paths |= {files.path(each) for each in _named_by(Metadata(other, document, files), same)}
    except (ValueError, OSError):  # damaged, or a store that does not answer just now
        return None
    return frozenset(paths)


def naming(table: Metadata, there: Collection[str], named_files: Collection[str]) -> Iterator[str]:
    """The metadata files, or the Delta log, because of which these files stay."""
    if any(DELTA in each for each in there) and not shows_delta(table):
        yield DELTA
    for other in sorted(each for each in there if each.endswith(METADATA)):
        if other not in own_of(table) and set(named_files) & (named(table, [other]) or set()):
            yield other


def own_of(table: Metadata) -> set[str]:
    """The metadata files of the table itself, as far as its log goes back."""
    files = table.files
    return {files.path(each["metadata-file"]) for each in table.document.get("metadata-log") or ()} | {files.path(table.file)}


def shows_delta(table: Metadata) -> bool:
    """Whether a Delta log is Sluice's own: it shows a snapshot that a tag keeps."""
    return any(is_follower_tag(name, "delta") for name in table.refs)


def in_folder(table: Metadata) -> list[str]:
    """The metadata files of a table's own folder, and the files of a Delta log."""
    location = str(table.document["location"])
    return [each for name in ("metadata", DELTA) for each in table.files.older(f"{location}/{name}")]


def _named_by(table: Metadata, same: bool) -> Iterator[str]:
    """The files that metadata names; without what the `same` table was shown with elsewhere, whose newest snapshot a tag keeps."""
    for snapshot in table.snapshots.values():
        if same and published.is_shown(snapshot):
            continue
        yield snapshot["manifest-list"]
        for manifest in _there(table, snapshot["manifest-list"]):
            yield manifest["manifest_path"]
            yield from (entry["data_file"]["file_path"] for entry in _there(table, manifest["manifest_path"]))
    yield from of_document(table.document)


def _there(table: Metadata, location: str) -> list[Any]:
    """A list of files, if it is there: an old metadata file may name expired ones."""
    try:
        return metadata.records(table.files, location)
    except FileNotFoundError:
        return []


def of_document(document: Any) -> Iterator[str]:
    """The files of statistics that a metadata file names."""
    for kind in ("statistics", "partition-statistics"):
        yield from (each["statistics-path"] for each in document.get(kind) or ())
