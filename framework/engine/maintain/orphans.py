"""Orphans: files in a table's folder that no metadata there names, such as those of a run that was killed while it wrote.

Guarantee: a file goes only if it is older than any run can be, lies in the table's own folder, and neither this table, a rebuild of it,
nor any other metadata file in that folder names it. Metadata files themselves stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from framework.engine.iceberg import deletable_files, metadata
from framework.engine.iceberg.lake import Lake
from framework.engine.iceberg.metadata import Metadata
from framework.engine.iceberg.second_identity import second_pipeline
from framework.model import Pipeline
from framework.sql.quote import identifier

_METADATA = ".metadata.json"
_DELTA = "_delta_log"


def delete_orphans(lake: Lake, pipeline: Pipeline, name: str, now: datetime) -> int:
    """How many files of the table, or of one of its side tables, went."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, name)
    if table is None:
        return 0
    files, location = table.files, str(table.document["location"])
    # Listed before the references are read: what is committed in between is among them.
    old = set(files.older(location, now - timedelta(seconds=pipeline.maintain.orphans_after)))
    there = set(files.older(location, now)) if old else set()
    if not old or any(_DELTA in each for each in there):
        return 0
    second = metadata.read(catalog, second_pipeline(pipeline).table.identifier)
    named = {files.path(each) for each in _named(lake, pipeline, name)}
    if second is not None and name == pipeline.table.identifier:
        named |= {files.path(each) for each in _named(lake, pipeline, second_pipeline(pipeline).table.identifier)}
    own = {files.path(each["metadata-file"]) for each in table.document.get("metadata-log") or ()} | {files.path(table.file)}
    others = {each for each in there if each.endswith(_METADATA)}
    try:
        for other in others - own:
            named |= {files.path(each) for each in _named_by(Metadata(other, files.metadata(other), files))}
    except ValueError:
        return 0  # what a damaged file names is unknown
    folders = deletable_files.of_attempts(files, location, table.properties.get("write.data.path"))
    return deletable_files.delete(files, old - named - others, folders)


def _named(lake: Lake, pipeline: Pipeline, name: str) -> Iterator[str]:
    """All files that a table's metadata names, of all its snapshots."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return
    sql_name = identifier(pipeline.table.catalog.name, *name.split("."))
    queries = ("file_path FROM {}.all_files", "path FROM {}.all_manifests", "manifest_list FROM {}.snapshots")
    for query in queries:
        yield from (row[0] for row in lake.spark.sql(f"SELECT {query.format(sql_name)}").collect())
    yield from _of_document(table.document)


def _named_by(table: Metadata) -> Iterator[str]:
    """The same of a metadata file that is not the current one of a table of ours: perhaps another catalog's."""
    for snapshot in table.snapshots.values():
        yield snapshot["manifest-list"]
        for manifest in _there(table, snapshot["manifest-list"]):
            yield manifest["manifest_path"]
            yield from (entry["data_file"]["file_path"] for entry in _there(table, manifest["manifest_path"]))
    yield from _of_document(table.document)


def _there(table: Metadata, location: str) -> list[Any]:
    """A list of files, if it is there: an old metadata file may name expired ones."""
    try:
        return metadata.records(table.files, location)
    except OSError:
        return []


def _of_document(document: Any) -> Iterator[str]:
    for kind in ("statistics", "partition-statistics"):
        yield from (each["statistics-path"] for each in document.get(kind) or ())
