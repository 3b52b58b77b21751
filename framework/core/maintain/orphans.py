"""Orphans: files in a table's folder that no metadata there names, such as the files of a run that was killed while it wrote.

Guarantee: a file is deleted only if it is older than any run can be, lies in `data` or `metadata` of the table's own folder, and
neither this table, a rebuild of it, nor any other metadata file in that folder names it. Metadata files themselves stay, and so
do files in other folders, such as a Delta log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from framework.core.iceberg import deletable_files, metadata, moves
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.second_identity import second_pipeline
from framework.core.maintain import file_lists, others
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline
from framework.sql.quote import identifier
from framework.systems.catalogs import ANY_TIME


def delete_orphans(lake: TableStore, pipeline: Pipeline, name: str, current_time: datetime) -> int:
    """Deletes the orphans of the table, or of one of its side tables; returns their number."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return 0
    files, location = table.files, str(table.document["location"])
    time_limit = current_time - timedelta(seconds=pipeline.maintain.orphans_after)
    if not unnamed(lake, pipeline, name, time_limit) or not _fenced(lake, pipeline, name):
        return 0
    old_files = unnamed(lake, pipeline, name, time_limit)
    by_others = others.named(table, set(files.older(location))) if old_files else None
    if by_others is None:
        return 0
    folders = deletable_files.of_attempts(files, location, table.properties.get("write.data.path"))
    return deletable_files.delete_or_leave(files, old_files - by_others, folders)


def _fenced(lake: TableStore, pipeline: Pipeline, name: str) -> bool:
    """Makes sure that no attempt is published any more that began before now, however long it was stopped: old files may be its rows."""
    for identifier_ in (name, second_pipeline(pipeline).table.identifier):
        table = lake.find(identifier_)
        try:
            if table is not None and table.currentSnapshot() is not None:
                moves.fence(lake, table)
        except (CommitRefused, CommitUnknown):
            return False
    return True


def unnamed(lake: TableStore, pipeline: Pipeline, name: str, time_limit: datetime = ANY_TIME) -> set[str]:
    """The files in Iceberg's folders that the table does not name, apart from metadata files."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return set()
    # Listed before the references are read: what is committed in between is among them.
    files, location = table.files, str(table.document["location"])
    in_folders = (path for folder in ("data", "metadata") for path in files.older(f"{location}/{folder}", time_limit))
    paths = {path for path in in_folders if not path.endswith(others.METADATA)}
    paths -= file_lists.all_files(table) if paths else set()
    second = second_pipeline(pipeline).table.identifier
    names = [second] if name == pipeline.table.identifier and metadata.read(pipeline.table.catalog, second) is not None else []
    return paths - {files.path(path) for owner in (name, *names) for path in named(lake, pipeline, owner)} if paths else paths


def named(lake: TableStore, pipeline: Pipeline, name: str) -> Iterator[str]:
    """Yields all files that a table's metadata names, for all its snapshots."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is None:
        return
    sql_name = identifier(pipeline.table.catalog.name, *name.split("."))
    queries = ("file_path FROM {}.all_files", "path FROM {}.all_manifests", "manifest_list FROM {}.snapshots")
    for query in queries:
        yield from (row[0] for row in lake.spark.sql(f"SELECT {query.format(sql_name)}").collect())
    yield from others.of_document(table.document)
