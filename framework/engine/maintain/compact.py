"""Compaction: small files, and files of rows that are marked as deleted, are written again as larger ones.

Guarantee: the same rows, in one commit of Iceberg's own, which is refused where another commit changed one of these files. A position
that belongs to the snapshot before then belongs to this one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from framework.engine.iceberg.jvm_state import state
from framework.engine.iceberg.lake import Lake
from framework.engine.maintain.due import FEWEST_FILES, Due, compacted
from framework.engine.rules import protocol
from framework.engine.rules.protocol import TableState
from framework.engine.spark.causes import commit_failed
from framework.engine.spark.java_errors import CommitRefused, CommitUnknown, commit_answers
from framework.model import Pipeline

_TRIES = 5
_REFUSED = "Cannot commit rewrite"  # in Iceberg's words for a conflict with another commit
_MARKED = 0.1  # the share of a file's rows that are marked as deleted, from which it is written again
_GROUP = 4 << 30  # the most bytes that are written at once


@dataclass(frozen=True)
class Compacted:
    """Files before and after, and the bytes that were read."""

    before: int
    after: int
    bytes: int


def compact(lake: Lake, pipeline: Pipeline, due: Due, most: int | None) -> Compacted:
    """Compacts at most so many bytes."""
    table = lake.load(due.identifier)
    if table is None:
        raise CommitRefused(f"the table {due.identifier} is gone")
    size = pipeline.maintain.compact_to
    action = lake.apache.iceberg.spark.actions.SparkActions.get(lake.spark._jsparkSession).rewriteDataFiles(table)
    for name, value in {
        "target-file-size-bytes": size,
        "min-input-files": FEWEST_FILES,
        "delete-ratio-threshold": _MARKED,
        "max-file-group-size-bytes": max(_GROUP, size),
        "max-concurrent-file-group-rewrites": 1,
        "partial-progress.enabled": "false",
        **({"max-files-to-rewrite": max(2 * FEWEST_FILES, most // max(1, due.average))} if most else {}),
    }.items():
        action = action.option(name, str(value))
    if due.joined_up_to is not None:
        action = action.filter(lake.apache.iceberg.expressions.Expressions.lessThanOrEqual("batch", due.joined_up_to))
    elif pipeline.table.sort_by:
        action = action.sort()
    text = table.properties().get(protocol.POSITION)
    if text:  # a table that is rolled back to this snapshot continues where the batch before it ended
        action = action.snapshotProperty(protocol.POSITION, text)
    try:
        with commit_answers():
            result = action.snapshotProperty(protocol.COMPACTED, "true").execute()
            return Compacted(result.rewrittenDataFilesCount(), result.addedDataFilesCount(), result.rewrittenBytesCount())
    except CommitUnknown as error:
        if _REFUSED in str(error):
            raise CommitRefused(str(error)) from None
        raise commit_failed(
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
            if moves(current):
                assert current.position is not None
                main = current.snapshots[current.main]
                to = replace(current.position, snapshot=main.id, sequence=main.sequence)
                lake.move_position(transaction, to, compacted(now, files))
            else:
                lake.mark_as_seen(transaction, compacted(now, files))
        except CommitRefused:
            continue
        return


def moves(current: TableState) -> bool:
    """Whether main is ahead of the position by compactions alone."""
    if current.position is None or current.main == current.position.snapshot:
        return False
    id_ = current.main
    while id_ != current.position.snapshot:
        snapshot = current.snapshots.get(id_)
        if snapshot is None or snapshot.attempt is not None or not snapshot.compacts:
            return False
        id_ = snapshot.parent if snapshot.parent is not None else -1
    return True
