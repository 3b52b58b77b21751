"""Moves of a table's main or its position without a batch: those that the table records, and rollbacks by other programs, which its
snapshot log shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import batch_of
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import recorded_moves
from framework.core.rules.recorded_moves import ROLLBACK, PositionMove


@dataclass(frozen=True, kw_only=True)
class MainMove:
    """One move. `record` is None for a rollback by another program. `rows` is the number of rows that main gained; None if unknown."""

    time: datetime
    operation: str
    record: PositionMove | None
    main_before: int
    main_after: int
    commits: int
    batches: tuple[int, int] | None
    rows: int | None

    @property
    def is_rollback(self) -> bool:
        return self.main_before != self.main_after


def main_moves(table: Metadata) -> tuple[MainMove, ...]:
    """The moves of a table, the newest first."""
    records = recorded_moves.recorded(table.properties)
    recorded_pairs = [(record.main_before, record.main_after) for record in records if record.main_before != record.main_after]
    moves = [_of_record(table, record) for record in records]
    for move in _rollbacks(table):
        if (move.main_before, move.main_after) in recorded_pairs:
            recorded_pairs.remove((move.main_before, move.main_after))
        else:
            moves.append(move)
    return tuple(sorted(moves, key=lambda move: move.time, reverse=True))


def _of_record(table: Metadata, record: PositionMove) -> MainMove:
    return MainMove(
        time=record.time, operation=record.operation, record=record, main_before=record.main_before,
        main_after=record.main_after, commits=record.commits, batches=record.batches,
        rows=_rows(table, record.main_before, record.main_after),
    )  # fmt: skip


def _rollbacks(table: Metadata) -> Iterator[MainMove]:
    """The rollbacks that the table's snapshot log shows."""
    for before, after in pairwise(table.document.get("snapshot-log") or ()):
        undone_snapshots, main = _undone(table, before["snapshot-id"], after["snapshot-id"])
        if not undone_snapshots or main is None:
            continue
        batches = [number for number in (batch_of(table, snapshot) for snapshot in undone_snapshots) if number is not None]
        yield MainMove(
            time=datetime.fromtimestamp(after["timestamp-ms"] / 1000, timezone.utc), operation=ROLLBACK, record=None,
            main_before=before["snapshot-id"], main_after=main, commits=len(undone_snapshots),
            batches=(min(batches), max(batches)) if batches else None, rows=_rows(table, before["snapshot-id"], main),
        )  # fmt: skip


def _undone(table: Metadata, before: int, after: int) -> tuple[Sequence[int], int | None]:
    """The snapshots that main lost when it went from one snapshot to another, and the snapshot to which it went back."""
    if before == after or table.snapshots.get(after, {}).get("parent-snapshot-id") == before:
        return (), None  # the usual case
    ancestor_ids = [snapshot["snapshot-id"] for snapshot in table.ancestors(before)]
    common = next(
        (snapshot["snapshot-id"] for snapshot in table.ancestors(after) if snapshot["snapshot-id"] in ancestor_ids), None
    )
    return ((), None) if common is None else (ancestor_ids[: ancestor_ids.index(common)], common)


def _rows(table: Metadata, before: int, after: int) -> int | None:
    if before == after:
        return 0
    if before not in table.snapshots or after not in table.snapshots:
        return None
    old_rows, new_rows = (metadata.rows(metadata.summary(table.snapshots[snapshot])) for snapshot in (before, after))
    return new_rows - old_rows
