"""What is remembered of deletes: a branch of the table for each day, which commits of the table move with main."""

from __future__ import annotations

from typing import Any

from framework.engine.iceberg.jvm_state import names
from framework.engine.rules import protocol
from framework.engine.spark.java_errors import Refused
from framework.errors import RefusedError

_KEPT = 100  # snapshots of a day that expiry leaves, so that a rollback over so many batches knows what was deleted before it


def days(table: Any) -> list[str]:
    return [name for name in names(table) if protocol.is_day(name)]


def days_of(table: Any, attempt: str) -> list[str]:
    """The days to whose deletes an attempt adds."""
    ending = protocol.deletes_of("", attempt)
    return [name.removesuffix(ending) for name in names(table) if name.startswith(protocol.DELETES) and name.endswith(ending)]


def taken_on(table: Any, snapshots: Any, day: str, attempt: str) -> Any:
    """What an attempt has added to a day's deletes becomes the day's, unless these are others by now."""
    own = protocol.deletes_of(day, attempt)
    tip, base = table.snapshot(own), table.snapshot(day) or table.snapshot(protocol.EMPTY)
    if tip.parentId() != base.snapshotId() or tip.summary().get(protocol.ATTEMPT) != attempt:
        raise Refused("the deletes that are remembered have changed")
    ref = table.refs().get(day)
    snapshots = (snapshots.replaceBranch if ref else snapshots.createBranch)(day, tip.snapshotId()).removeBranch(own)
    return snapshots.setMinSnapshotsToKeep(day, min(_KEPT, _kept(ref) + 1 if ref else 1))


def _kept(ref: Any) -> int:
    """So many of a day's snapshots expiry leaves: its own, for before them come those of the table."""
    return int(ref.minSnapshotsToKeep() or 1)


def rolled_back(table: Any, snapshots: Any, day: str, published: Any) -> Any:
    """A day's deletes as they were when a batch was published. Its own are staged behind its rows."""
    attempt, moment = published.summary().get(protocol.ATTEMPT), published.timestampMillis()
    known, undone = table.snapshot(day), 0
    while known.timestampMillis() > moment:
        if attempt is not None and known.summary().get(protocol.ATTEMPT) == attempt:
            break
        if known.parentId() is None:
            return snapshots.removeBranch(day)
        undone += 1
        known = table.snapshot(known.parentId())
        if known is None:
            raise RefusedError(
                "deletes-expired",
                f"which keys were deleted before the rollback is not known any more: snapshots of the branch {day} have expired",
                f"`sluice rebuild {table.name().partition('.')[2]}` makes the table anew from its topics",
            )
    if not undone:
        return snapshots
    kept = max(1, _kept(table.refs().get(day)) - undone)
    return snapshots.replaceBranch(day, known.snapshotId()).setMinSnapshotsToKeep(day, kept)
