"""Moves of a table's position without a batch, such as a rollback: a property of the table lists them for `sluice history`.

*Limit* The newest 50 are listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from framework.core.rules.packed import packed, unpacked
from framework.core.rules.protocol import Partition, Position, Standing, TableState, standing

PROPERTY = "sluice.moves"
ROLLBACK, REWIND, ACCEPT, ADOPT, NEW_TOPIC = "rollback", "rewind", "accept", "adopt", "new topic"
_MAX_MOVES = 50


@dataclass(frozen=True, kw_only=True)
class PositionMove:
    """One move. A rollback undid `commits`, whose batches are numbered from the first to the last of `batches`. Of commits with a number
    above the first of `undone`, up to the second, main has none any more."""

    operation: str
    time: datetime
    batch: int  # the number that the move took, as a batch does
    ends: Mapping[Partition, int]
    main_before: int
    main_after: int
    commits: int = 0
    batches: tuple[int, int] | None = None
    undone: tuple[int, int] | None = None


def recorded(properties: Mapping[str, str]) -> tuple[PositionMove, ...]:
    """The moves that a table's properties list, the oldest first; none where another program wrote something else there."""
    try:
        return tuple(_read(fields) for fields in json.loads(properties.get(PROPERTY, "[]")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def with_move(
    text: str | None, operation: str, position: Position, before: TableState, main: int | None = None
) -> dict[str, str]:
    """The property after one more move, from the table's state `before` to `position`. `main` is where a rollback puts it."""
    undone = _undone(before, before.main if main is None else main)
    batches = [Position.read(snapshot).batch for snapshot in undone if snapshot]
    # Of batches in between, snapshots may have expired.
    commit_count = max(len(undone), max(batches) - min(batches) + 1) if batches else len(undone)
    move = PositionMove(
        operation=operation, time=datetime.now(timezone.utc), batch=position.batch, ends=position.ends,
        main_before=before.main, main_after=before.main if main is None else main,
        commits=commit_count, batches=(min(batches), max(batches)) if batches else None,
        undone=_undone_numbers(before, main),
    )  # fmt: skip
    moves = (*recorded({PROPERTY: text} if text else {}), move)[-_MAX_MOVES:]
    return {PROPERTY: json.dumps([_written(move) for move in moves], separators=(",", ":"))}


def _undone(state: TableState, main: int) -> list[str | None]:
    """The positions of the snapshots that a rollback to `main` undoes."""
    positions: list[str | None] = []
    snapshot = state.snapshots.get(state.main)
    while snapshot is not None and snapshot.id != main:
        positions.append(snapshot.position)
        snapshot = state.snapshots.get(snapshot.parent or -1)
    return positions


def _undone_numbers(before: TableState, main: int | None) -> tuple[int, int] | None:
    """The numbers of undone commits: of those since the one to which main goes back; or, where another program had put main back, of those
    up to the position's, above the last one that main has. Main has gone on from there since, with greater numbers."""
    position = before.position
    if main is not None and main in before.snapshots and before.main in before.snapshots:
        last_numbers = before.snapshots[before.main].sequence, position.sequence if position else 0
        return before.snapshots[main].sequence, max(last_numbers)
    if position is None or standing(before) is not Standing.ROLLED_BACK:
        return None
    snapshot = before.snapshots.get(before.main)
    while snapshot is not None and snapshot.sequence >= position.sequence:
        snapshot = before.snapshots.get(snapshot.parent or -1)
    return snapshot.sequence if snapshot else 0, position.sequence


def _written(move: PositionMove) -> dict[str, object]:
    return {
        "operation": move.operation, "time": move.time.isoformat(timespec="milliseconds"), "batch": move.batch,
        "ends": packed(move.ends), "main_before": move.main_before, "main_after": move.main_after,
        **({"commits": move.commits} if move.commits else {}), **({"batches": move.batches} if move.batches else {}),
        **({"undone": move.undone} if move.undone else {}),
    }  # fmt: skip


def _read(fields: Mapping[str, Any]) -> PositionMove:
    pairs = {name: tuple(fields[name]) for name in ("batches", "undone") if fields.get(name)}
    values: dict[str, Any] = {
        **fields, **pairs, "time": datetime.fromisoformat(fields["time"]), "ends": unpacked(fields["ends"]),
    }  # fmt: skip
    return PositionMove(**values)
