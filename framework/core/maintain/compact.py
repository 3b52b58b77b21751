"""Compaction: small files, and files of rows that are marked as deleted, are written again as larger ones.

Guarantee: the same rows, in one commit of Iceberg's own, which is refused where another commit changed one of these files. A position
that belongs to the snapshot before then belongs to this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from framework.core.iceberg import moves
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import Lake
from framework.core.maintain.due import FEWEST_FILES, SMALL, Due, compacted
from framework.core.rules import protocol
from framework.core.spark.causes import catalog_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers
from framework.plan import Pipeline

_TRIES = 5
_MARKED = 0.1  # the share of a file's rows that are marked as deleted, from which it is written again
_GROUP = 4 << 30  # the most bytes that are written at once


@dataclass(frozen=True)
class Compacted:
    """Files before and after."""

    before: int
    after: int


def compact(lake: Lake, pipeline: Pipeline, due: Due, most: int | None, every_delete: bool = False) -> Compacted:
    """Compacts about so many bytes at most, in the partitions first into which nothing was written for longest. With `every_delete`,
    each file goes in which a row is marked as deleted."""
    table = lake.load(due.identifier)
    if table is None:
        raise CommitRefused(f"the table {due.identifier} is gone")
    size = pipeline.maintain.compact_to
    action = lake.apache.iceberg.spark.actions.SparkActions.get(lake.spark._jsparkSession).rewriteDataFiles(table)
    for name, value in {
        "target-file-size-bytes": size,
        "min-input-files": FEWEST_FILES,
        "delete-ratio-threshold": _MARKED,
        # A follower that shows files waits until no file has deleted rows.
        **({"remove-dangling-deletes": "true"} if every_delete else {}),
        **({"delete-file-threshold": 1} if every_delete or any(each.by_files for each in pipeline.also) else {}),
        "max-file-group-size-bytes": max(_GROUP, size),
        "max-concurrent-file-group-rewrites": 1,
        "partial-progress.enabled": "false",
        **({"max-files-to-rewrite": max(2 * FEWEST_FILES, most // max(1, due.average))} if most else {}),
    }.items():
        action = action.option(name, str(value))
    if most and (cold := lake.spark._jvm.sluice.ColdPartitions.within(table, most, int(SMALL * size), FEWEST_FILES)) is not None:
        action = action.filter(cold)
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


def settle(lake: Lake, identifier: str, now: datetime) -> None:
    """Moves the position from the snapshot before a compaction to the one after it, and says when that was."""
    for _ in range(_TRIES):
        table = lake.load(identifier)
        if table is None:
            return
        transaction = lake.begin(table)
        current = state(transaction.table())
        files = int(transaction.table().currentSnapshot().summary().get("total-data-files") or 0)
        try:
            to = protocol.settled(current)
            if to is not None:
                moves.move_position(lake, transaction, to, compacted(now, files))
            else:
                lake.mark_as_seen(transaction, compacted(now, files))
        except CommitRefused:
            continue
        return
