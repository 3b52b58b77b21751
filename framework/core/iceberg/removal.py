"""Removal of branches, tags and snapshots from a table, and the files that may be deleted with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from framework.core.iceberg import deletable_files, state_branches
from framework.core.iceberg.commit import commit
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.updates import Commit, Updates
from framework.core.rules import protocol
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers
from framework.systems.catalogs import TableFiles


def sweep(lake: TableStore, table: Any, attempt: str) -> None:
    """Deletes the branch of a dead attempt, and the files that only it had."""
    tip = table.snapshot(protocol.BRANCH + attempt)
    with Updates(table).references() as references:
        references.remove(protocol.BRANCH + attempt)
        references.remove(*(protocol.staged_state(branch, attempt) for branch in state_branches.staged(table, attempt)))
    # If this is refused, the snapshot stays until the next expiry: the branch is gone. It also stays where the catalog does not compare
    # whether the snapshot was published.
    if tip is None or not lake.component.checks_all or tip.summary().get(protocol.ATTEMPT) != attempt:
        return
    with suppress(CommitRefused, CommitUnknown), commit_answers():
        if _deletable(lake, table, tip):
            Updates(table).expire([tip.snapshotId()])


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


@dataclass(frozen=True)
class Expiry:
    """Snapshots to be removed, and the files that only they have. `others`: the table's other snapshots when these files were searched."""

    snapshots: Collection[int]
    locations: Sequence[str]
    others: Collection[int]


def begin_expiry(lake: TableStore, table: Any, snapshots: Collection[int]) -> Expiry:
    """Searches the files that only these snapshots have. It takes long, so a commit that is never made does it."""
    search, collected = lake.begin(table), lake.spark._jvm.sluice.Collected()
    with commit_answers():
        before = {snapshot.snapshotId() for snapshot in search.table.snapshots()}
    search.expire(snapshots, collected)
    locations = collected.lines().split("\n") if collected.lines() else []
    return Expiry(frozenset(snapshots), locations, before - set(snapshots))


def expire(
    lake: TableStore, table: Any, expiry: Expiry, properties: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None
) -> None:
    """Removes the snapshots and no others. With them the table gets what `properties` makes of its properties."""
    commit(lambda: partial(_expire_judged, lake.begin(table), expiry, properties), CommitRefused)


def _expire_judged(expiring: Commit, expiry: Expiry, properties: Callable[[Mapping[str, str]], Mapping[str, str]] | None) -> None:
    """Expires the snapshots, if nothing else was committed since the table was judged: a server removes main with its snapshot. Refused if
    main went back since the snapshots were chosen: they say what is to be read again. Also refused if a snapshot that came since then
    has one of them as its parent, and so its files."""
    with commit_answers():
        if protocol.standing(state(expiring.table)) is protocol.Standing.ROLLED_BACK:
            raise CommitRefused("the table was rolled back")
        known_ids = {*expiry.snapshots, *expiry.others}
        new_snapshots = [snapshot for snapshot in expiring.table.snapshots() if snapshot.snapshotId() not in known_ids]
        if any(snapshot.parentId() in expiry.snapshots for snapshot in new_snapshots):
            raise CommitRefused("another commit came before it")
    expiring.expire(expiry.snapshots, cleans=False)
    if properties is not None:
        expiring.set(properties(expiring.table.properties()))
    expiring.require_nothing_else()
    expiring.make()
