"""Expiry: deletes snapshots that nothing needs, and then the files that only these had."""

from __future__ import annotations

from collections.abc import Collection

from framework.core.iceberg import deletable_files, metadata, removal
from framework.core.iceberg.jvm_state import names
from framework.core.iceberg.lake import TableStore
from framework.core.maintain import others
from framework.core.spark.java_errors import CommitRefused
from framework.plan import Catalog


def expire(lake: TableStore, catalog: Catalog, identifier: str, snapshots: Collection[int]) -> tuple[int, int]:
    """Expires snapshots; returns the numbers of deleted snapshots and files. A file outside the table's folders stays, whatever
    the metadata says, and so does a file that other metadata names. If it is unknown what other metadata names, all files stay."""
    table = lake.load(identifier)
    if table is None:
        raise CommitRefused(f"the table {identifier} is gone")
    refs = table.refs()
    heads = {refs[name].snapshotId() for name in names(table)}
    expired_ids = [snapshot for snapshot in snapshots if snapshot not in heads and table.snapshot(snapshot) is not None]
    if not expired_ids:
        return 0, 0
    collected = lake.spark._jvm.sluice.Collected()
    removal.expire(lake, table, expired_ids, collected)
    locations = collected.lines().split("\n") if collected.lines() else []
    files, folders = removal.own_files(lake, table)
    current_table = metadata.read(catalog, identifier)
    by_others = others.named(current_table, others.in_folder(current_table)) if current_table and locations else None
    if by_others is None:
        return len(expired_ids), 0
    return len(expired_ids), deletable_files.delete(
        files, [location for location in locations if files.path(location) not in by_others], folders
    )
