"""Deletes the files of snapshots that expired early, an hour later, by the lists of them (`file_lists.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from framework.core.iceberg import deletable_files, metadata, removal
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.metadata import Metadata
from framework.core.maintain import file_lists, others
from framework.core.rules import protocol
from framework.plan import Catalog

_LONGEST = timedelta(days=1)


def delete(lake: TableStore, catalog: Catalog, identifier: str, current_time: datetime) -> int:
    """Deletes the listed files that may be deleted now, and their lists; returns the number of files. All stay if it is unknown what other
    metadata names; what it names is left to the search for orphans."""
    table = metadata.read(catalog, identifier)
    old_names = [name for name in file_lists.names(table.properties) if file_lists.time_of(name) < current_time] if table else []
    by_others = others.named_now(catalog, identifier) if old_names else None
    loaded_table, table = lake.load(identifier), metadata.read(catalog, identifier)
    if loaded_table is None or table is None or not old_names:
        return 0
    if by_others is None:  # it may never be known, and lists would become ever more
        _give_up(lake, loaded_table, table, [name for name in old_names if file_lists.time_of(name) < current_time - _LONGEST])
        return 0
    old_lists = [file_lists.read(table, name) for name in old_names]
    file_store, folders = removal.own_files(lake, loaded_table)
    expired_lists = [old_list for old_list in old_lists if not table.snapshots.keys() & set(old_list.snapshots)]
    paths = {table.files.path(location) for old_list in expired_lists for location in old_list.files} - by_others
    count = deletable_files.delete_or_leave(file_store, paths, folders)
    deletable_files.delete_or_leave(file_store, [old_list.path for old_list in old_lists], folders)
    _forget(lake, loaded_table, old_names)
    return count


def _give_up(lake: TableStore, loaded_table: Any, table: Metadata, names: Sequence[str]) -> None:
    """Deletes lists, whose files are left to the search for orphans."""
    for name in names:
        file_lists.drop(table, name)
    if names:
        _forget(lake, loaded_table, names)


def _forget(lake: TableStore, loaded_table: Any, names: Sequence[str]) -> None:
    """Records that lists are worked off. If another commit comes first, that is found the next time."""
    commit = lake.begin(loaded_table)
    remaining_names = [name for name in file_lists.names(commit.table.properties()) if name not in names]
    lake.mark_as_seen(commit, {protocol.DELETE_LATER: " ".join(remaining_names)})
