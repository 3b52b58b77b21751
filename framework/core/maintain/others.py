"""Files of a table that other metadata names: of another catalog that registered the table, or of a table in its folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from framework.core.iceberg import metadata, published
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.plan import Catalog
from framework.plan.follower import is_follower_tag

METADATA = ".metadata.json"
DELTA = "_delta_log"


def named(table: Metadata, folder_files: Collection[str]) -> frozenset[str] | None:
    """The paths that other metadata among `folder_files` names; None if unknown, for a Delta log or a damaged metadata file."""
    if any(DELTA in path for path in folder_files) and not shows_delta(table):
        return None
    files, own_files = table.files, own_of(table)
    paths: set[str] = set()
    try:
        for other_file in {path for path in folder_files if path.endswith(METADATA)} - own_files:
            try:
                document = files.metadata(other_file)
            except FileNotFoundError:  # the table's own, of which its log has dropped the oldest meanwhile
                continue
            same = document.get("table-uuid") == table.uuid
            # No other catalog shows a table of bad rows: metadata files that its log no longer lists are its own.
            if protocol.OF not in table.properties or not same:
                paths |= {files.path(path) for path in _named_by(Metadata(other_file, document, files), same)}
    except (ValueError, OSError):  # damaged, or a store that does not answer just now
        return None
    return frozenset(paths)


def named_now(catalog: Catalog, identifier: str) -> frozenset[str] | None:
    """The paths that other metadata in the table's folder names now. Commits may come meanwhile: files that are the table's own before or
    after the folder is listed are no others."""
    table = metadata.read(catalog, identifier)
    folder_files = set(in_folder(table)) - own_of(table) if table else set()
    current_table = metadata.read(catalog, identifier)
    return named(current_table, folder_files) if current_table else None


def naming(table: Metadata, folder_files: Collection[str], named_files: Collection[str]) -> Iterator[str]:
    """The metadata files, or the Delta log, because of which these files stay."""
    if any(DELTA in path for path in folder_files) and not shows_delta(table):
        yield DELTA
    for other_file in sorted(path for path in folder_files if path.endswith(METADATA)):
        if other_file not in own_of(table) and set(named_files) & (named(table, [other_file]) or set()):
            yield other_file


def own_of(table: Metadata) -> set[str]:
    """The metadata files of the table itself, as far as its log goes back."""
    files = table.files
    return {files.path(entry["metadata-file"]) for entry in table.document.get("metadata-log") or ()} | {files.path(table.file)}


def shows_delta(table: Metadata) -> bool:
    """Whether a Delta log is Sluice's own: it shows a snapshot that a tag keeps."""
    return any(is_follower_tag(name, "delta") for name in table.refs)


def in_folder(table: Metadata) -> list[str]:
    """The metadata files of a table's own folder, and the files of a Delta log."""
    location = str(table.document["location"])
    return [path for name in ("metadata", DELTA) for path in table.files.older(f"{location}/{name}")]


def _named_by(table: Metadata, same: bool) -> Iterator[str]:
    """The files that metadata names. For the `same` table, without snapshots for other catalogs: a tag keeps the newest."""
    for snapshot in table.snapshots.values():
        if same and published.is_shown(snapshot):
            continue
        yield snapshot["manifest-list"]
        for manifest in _records_if_present(table, snapshot["manifest-list"]):
            yield manifest["manifest_path"]
            yield from (entry["data_file"]["file_path"] for entry in _records_if_present(table, manifest["manifest_path"]))
    yield from of_document(table.document)


def _records_if_present(table: Metadata, location: str) -> list[Any]:
    """The entries of a list of files; none if it is gone: an old metadata file may name expired lists."""
    try:
        return metadata.records(table.files, location)
    except FileNotFoundError:
        return []


def of_document(document: Any) -> Iterator[str]:
    """The files of statistics that a metadata file names."""
    for kind in ("statistics", "partition-statistics"):
        yield from (entry["statistics-path"] for entry in document.get(kind) or ())
