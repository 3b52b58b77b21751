"""Compaction: rewrites small files, and files with rows that are marked as deleted, as larger files.

Guarantee: the rows stay the same. The commit is Iceberg's own, which is refused if another commit changed one of these files. The
position of the snapshot before the compaction is moved to the one after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from framework.core.iceberg import moves
from framework.core.iceberg.commit import Outcome, commit
from framework.core.iceberg.jvm_state import state, total
from framework.core.iceberg.lake import TableStore
from framework.core.maintain.due import FEWEST_FILES, SMALL, Due, compacted
from framework.core.rules import protocol
from framework.core.spark.causes import catalog_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers
from framework.plan import Pipeline

_MARKED = 0.1  # a file is rewritten if at least this share of its rows is marked as deleted
_GROUP = 4 << 30  # the most bytes that are written at once


@dataclass(frozen=True)
class Compacted:
    """The numbers of files before and after a compaction."""

    before: int
    after: int


def compact(lake: TableStore, pipeline: Pipeline, due: Due, byte_limit: int | None, every_delete: bool = False) -> Compacted:
    """Compacts at most about `byte_limit` bytes, first in the partitions that were not written to for longest. With
    `every_delete`, also rewrites each file in which a row is marked as deleted."""
    table = lake.load(due.identifier)
    if table is None:
        raise CommitRefused(f"the table {due.identifier} is gone")
    if protocol.DELETE_LATER in dict(table.properties()):  # snapshots of this table expire early
        record = f"{table.currentSnapshot().sequenceNumber()} {int(time.time())}"
        if lake.component.checks_all:
            commit(lambda: partial(lake.mark_as_seen, lake.begin(table), {protocol.COMPACTING: record}), CommitRefused)
        else:  # there, a commit that is refused if anything came before it moves main, too
            lake.mark(table, {protocol.COMPACTING: record})
        table = lake.load(due.identifier)
    refused = lake.spark._jvm.sluice.Refused(table)
    with commit_answers():
        before = refused.current()
    size = pipeline.maintain.compact_to
    action = lake.apache.iceberg.spark.actions.SparkActions.get(lake.spark._jsparkSession).rewriteDataFiles(table)
    for name, value in {
        "target-file-size-bytes": size,
        "min-input-files": FEWEST_FILES,
        "delete-ratio-threshold": _MARKED,
        # A follower that shows files waits until no file has deleted rows.
        **({"remove-dangling-deletes": "true"} if every_delete else {}),
        **({"delete-file-threshold": 1} if every_delete or any(follower.by_files for follower in pipeline.also) else {}),
        "max-file-group-size-bytes": max(_GROUP, size),
        "max-concurrent-file-group-rewrites": 1,
        "partial-progress.enabled": "false",
        **({"max-files-to-rewrite": max(2 * FEWEST_FILES, byte_limit // max(1, due.average))} if byte_limit else {}),
    }.items():
        action = action.option(name, str(value))
    if (
        byte_limit
        and (cold_partitions := lake.spark._jvm.sluice.ColdPartitions.within(table, byte_limit, int(SMALL * size), FEWEST_FILES))
        is not None
    ):
        action = action.filter(cold_partitions)
    if pipeline.table.sort_by and due.identifier == pipeline.table.identifier:
        action = action.sort()
    try:
        with commit_answers():
            result = action.snapshotProperty(protocol.COMPACTED, "true").execute()
            return Compacted(result.rewrittenDataFilesCount(), result.addedDataFilesCount())
    except CommitUnknown as error:
        raise catalog_failed(
            "not-compacted", f"{due.identifier} could not be compacted", str(error), "its rows are as before"
        ) from None
    finally:
        with suppress(CommitRefused, CommitUnknown), commit_answers():
            refused.deleteCompactions(before, protocol.COMPACTED)


def settle(lake: TableStore, identifier: str, current_time: datetime) -> None:
    """Moves the position from the snapshot before a compaction to the one after it, and records the time of the compaction."""

    def judge() -> Outcome[None] | Callable[[], None]:
        table = lake.load(identifier)
        if table is None:
            return Outcome(None)
        settling = lake.begin(table)
        file_count = total(settling.table.currentSnapshot(), "data-files")
        target = protocol.settled(state(settling.table))
        if target is None:
            return partial(lake.mark_as_seen, settling, compacted(current_time, file_count))
        return partial(moves.move_position, settling, target, compacted(current_time, file_count))

    commit(judge, CommitRefused)
