"""Removal of branches, tags and snapshots from a table, and the files that may be deleted with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from framework.core.iceberg import deletable_files, state_branches
from framework.core.iceberg.commit import commit
from framework.core.iceberg.lake import TableStore
from framework.core.rules import protocol
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers
from framework.systems.catalogs import TableFiles


def unpin(table: Any, names: Iterable[str]) -> None:
    """Removes tags and branches of other programs, in one commit."""
    refs = table.refs()
    snapshots = table.manageSnapshots()
    existing_names = [name for name in names if refs.containsKey(name)]
    for name in existing_names:
        snapshots = snapshots.removeBranch(name) if refs.get(name).isBranch() else snapshots.removeTag(name)
    if existing_names:
        with commit_answers():
            snapshots.commit()


def sweep(lake: TableStore, table: Any, attempt: str) -> None:
    """Deletes the branch of a dead attempt, and the files that only it had."""
    tip = table.snapshot(protocol.BRANCH + attempt)
    with commit_answers():
        snapshots = table.manageSnapshots().removeBranch(protocol.BRANCH + attempt)
        for branch in state_branches.staged(table, attempt):
            snapshots = snapshots.removeBranch(protocol.staged_state(branch, attempt))
        snapshots.commit()
    # If this is refused, the snapshot stays until the next expiry: the branch is gone. It also stays where the catalog does not compare
    # whether the snapshot was published.
    if tip is None or not lake.component.checks_all or tip.summary().get(protocol.ATTEMPT) != attempt:
        return
    with suppress(CommitRefused, CommitUnknown), commit_answers():
        if _deletable(lake, table, tip):
            _expiring(table, [tip.snapshotId()]).commit()


def _deletable(lake: TableStore, table: Any, tip: Any) -> bool:
    """Whether Iceberg may delete the files of this snapshot: Iceberg deletes every file that it names and main does not."""
    main = table.currentSnapshot()
    statistics = (*table.statisticsFiles().toArray(), *table.partitionStatisticsFiles().toArray())
    if main is None or any(file.snapshotId() == tip.snapshotId() for file in statistics):
        return False
    files, folders = own_files(lake, table)
    return deletable_files.names_nothing_else(files, folders, tip.manifestListLocation(), main.manifestListLocation())


def own_files(lake: TableStore, table: Any) -> tuple[TableFiles, tuple[str, ...]]:
    """The catalog's files, and the folders of a table in which some may be deleted."""
    files = lake.component.files_of(str(table.name()).removeprefix(f"{lake.component.name}."))
    if files.root:
        files = replace(files, root=lake.spark.conf.get(f"spark.sql.catalog.{lake.component.name}.warehouse", files.root))
    return files, deletable_files.of_attempts(files, str(table.location()), table.properties().get("write.data.path"))


def expire(lake: TableStore, table: Any, snapshots: Collection[int], collector: Any) -> None:
    """Removes these snapshots and no others, and gives the files that only they had to `collector`."""
    if lake.component.checks_all:
        with commit_answers():
            _expiring(table, snapshots).deleteWith(collector).commit()
        return
    # Finding these files takes long, so a transaction that is never committed does it.
    with commit_answers():
        transaction = table.newTransaction()
        before = {snapshot.snapshotId() for snapshot in transaction.table().snapshots()}
        _expiring(transaction, snapshots).deleteWith(collector).commit()
    commit(lambda: partial(_expire_pinned, lake, table, set(snapshots), before), CommitRefused)


def _expire_pinned(lake: TableStore, table: Any, snapshots: Collection[int], before: Collection[int]) -> None:
    """Expires the snapshots by a commit that also moves main: a server removes main with its snapshot, so the commit is refused if main
    went back to one of them. It is also refused if a snapshot that is not in `before` has one of them as its parent, and so its files."""
    with commit_answers():
        transaction = table.newTransaction()
        new_snapshots = [snapshot for snapshot in transaction.table().snapshots() if snapshot.snapshotId() not in before]
        if any(snapshot.parentId() in snapshots for snapshot in new_snapshots):
            raise CommitRefused("another commit came before it")
        _expiring(transaction, snapshots).cleanExpiredFiles(False).commit()
        lake.pin(transaction)
        transaction.commitTransaction()


def _expiring(target: Any, snapshots: Iterable[int]) -> Any:
    action = target.expireSnapshots().expireOlderThan(0)  # older than 1970: no others
    for snapshot in snapshots:
        action = action.expireSnapshotId(snapshot)
    return action
