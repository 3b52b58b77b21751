"""Expiry: deletes snapshots that nothing needs, and then the files that only these had."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from framework.core.iceberg import deletable_files, metadata, removal
from framework.core.iceberg.jvm_state import names
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.removal import Expiry
from framework.core.maintain import file_lists, others
from framework.core.spark.java_errors import CommitRefused
from framework.plan import Catalog


def expire(
    lake: TableStore,
    catalog: Catalog,
    identifier: str,
    snapshots: Collection[int],
    later_than: datetime | None = None,
    may_leave: bool = False,
) -> tuple[int, int]:
    """Expires snapshots; returns the numbers of deleted snapshots and files. A file outside the table's folders stays, whatever
    the metadata says, and so does a file that other metadata names. If it is unknown what other metadata names, all files stay. With
    `later_than`, which is now, the files are only listed, to be deleted later. With `may_leave`, a login without
    the right to delete leaves them."""
    table = lake.load(identifier)
    if table is None:
        raise CommitRefused(f"the table {identifier} is gone")
    refs = table.refs()
    heads = {refs[name].snapshotId() for name in names(table)}
    expired_ids = [snapshot for snapshot in snapshots if snapshot not in heads and table.snapshot(snapshot) is not None]
    if not expired_ids:
        return 0, 0
    expiry = removal.begin_expiry(lake, table, expired_ids)
    if later_than is not None:
        _list_and_expire(lake, catalog, identifier, expiry, later_than)
        return len(expired_ids), 0
    removal.expire(lake, table, expiry)
    by_others = others.named_now(catalog, identifier) if expiry.locations else None
    if by_others is None:
        return len(expired_ids), 0
    files, folders = removal.own_files(lake, table)
    delete = deletable_files.delete_or_leave if may_leave else deletable_files.delete
    return len(expired_ids), delete(
        files, [location for location in expiry.locations if files.path(location) not in by_others], folders
    )


def _list_and_expire(lake: TableStore, catalog: Catalog, identifier: str, expiry: Expiry, current_time: datetime) -> None:
    """Lists the files first: a process that dies behind the commit would leave them for ever."""
    table = metadata.read(catalog, identifier)
    if table is None:
        raise CommitRefused(f"the table {identifier} is gone")
    name = file_lists.write(table, expiry.snapshots, expiry.locations, current_time)
    try:
        removal.expire(lake, lake.load(identifier), expiry, lambda properties: file_lists.with_list(properties, name))
    except CommitRefused:
        file_lists.drop(table, name)
        raise
