"""Orphans: files in a table's folder that no metadata there names, such as those of a run that was killed while it wrote.

Guarantee: a file goes only if it is older than any run can be, lies in `data` or `metadata` of the table's own folder, and neither this
table, a rebuild of it, nor any other metadata file in that folder names it. Metadata files themselves stay, and what others keep in other
folders, such as a Delta log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from framework.core.iceberg import deletable_files, metadata
from framework.core.iceberg.lake import Lake
from framework.core.iceberg.second_identity import second_pipeline
from framework.core.maintain import others
from framework.plan import Pipeline
from framework.sql.quote import identifier
from framework.systems.catalogs import ANY_TIME


def delete_orphans(lake: Lake, pipeline: Pipeline, name: str, now: datetime) -> int:
    """Returns the number of deleted files of the table, or of one of its side tables."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return 0
    files, location = table.files, str(table.document["location"])
    old = unnamed(lake, pipeline, name, now - timedelta(seconds=pipeline.maintain.orphans_after))
    by_others = others.named(table, set(files.older(location))) if old else None
    if by_others is None:
        return 0
    folders = deletable_files.of_attempts(files, location, table.properties.get("write.data.path"))
    return deletable_files.delete(files, old - by_others, folders)


def unnamed(lake: Lake, pipeline: Pipeline, name: str, before: datetime = ANY_TIME) -> set[str]:
    """The files in the folders that Iceberg fills that the table does not name, but for its metadata."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return set()
    # Listed before the references are read: what is committed in between is among them.
    files, location = table.files, str(table.document["location"])
    in_folders = (each for folder in ("data", "metadata") for each in files.older(f"{location}/{folder}", before))
    old = {each for each in in_folders if not each.endswith(others.METADATA)}
    second = second_pipeline(pipeline).table.identifier
    also = [second] if name == pipeline.table.identifier and metadata.read(pipeline.table.catalog, second) is not None else []
    return old - {files.path(each) for of in (name, *also) for each in named(lake, pipeline, of)} if old else old


def named(lake: Lake, pipeline: Pipeline, name: str) -> Iterator[str]:
    """All files that a table's metadata names, of all its snapshots."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return
    sql_name = identifier(pipeline.table.catalog.name, *name.split("."))
    queries = ("file_path FROM {}.all_files", "path FROM {}.all_manifests", "manifest_list FROM {}.snapshots")
    for query in queries:
        yield from (row[0] for row in lake.spark.sql(f"SELECT {query.format(sql_name)}").collect())
    yield from others.of_document(table.document)
