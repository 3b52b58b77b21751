"""Expiry: snapshots that nothing needs go, and then the files that only those had."""

from __future__ import annotations

from collections.abc import Collection

from framework.core.iceberg import deletable_files, metadata, removal
from framework.core.iceberg.jvm_state import names
from framework.core.iceberg.lake import Lake
from framework.core.maintain import others
from framework.core.spark.java_errors import CommitRefused
from framework.plan import Catalog


def expire(lake: Lake, catalog: Catalog, identifier: str, snapshots: Collection[int]) -> tuple[int, int]:
    """Returns the numbers of deleted snapshots and files. A file outside of the table's folders stays, whatever the metadata says, and
    one that others name."""
    table = lake.load(identifier)
    if table is None:
        raise CommitRefused(f"the table {identifier} is gone")
    refs = table.refs()
    heads = {refs[name].snapshotId() for name in names(table)}
    going = [each for each in snapshots if each not in heads and table.snapshot(each) is not None]
    if not going:
        return 0, 0
    collected = lake.spark._jvm.sluice.Collected()
    removal.expire(lake, table, going, collected)
    locations = collected.lines().split("\n") if collected.lines() else []
    files, folders = removal.own_files(lake, table)
    now = metadata.read(catalog, identifier)
    by_others = others.named(now, others.in_folder(now)) if now and locations else None
    if by_others is None:
        return len(going), 0
    return len(going), deletable_files.delete(files, [each for each in locations if files.path(each) not in by_others], folders)
