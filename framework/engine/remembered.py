"""What is remembered of deletes: a branch of the table for each day, which commits of the table move with main."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from framework.engine import protocol
from framework.engine.answers import Refused
from framework.engine.seen import names


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
    there = table.refs().containsKey(day)
    return (snapshots.replaceBranch if there else snapshots.createBranch)(day, tip.snapshotId()).removeBranch(own)


@dataclass(frozen=True)
class Before:
    """A day's deletes as they were when a batch was published: at a snapshot, none yet, or without what `undone` brought since
    the snapshot has expired."""

    snapshot: Any | None
    undone: tuple[Any, ...] = ()


def before(table: Any, day: str, published: Any) -> Before:
    """The batch's own deletes are staged behind its rows."""
    attempt, moment = published.summary().get(protocol.ATTEMPT), published.timestampMillis()
    known = table.snapshot(day)
    undone = []
    while known is not None and known.timestampMillis() > moment:
        if attempt is not None and known.summary().get(protocol.ATTEMPT) == attempt:
            break
        undone.append(known)
        if known.parentId() is None:
            return Before(None)
        known = table.snapshot(known.parentId())
    return Before(known) if known is not None else Before(undone[0], tuple(undone))


def take_out(transaction: Any, day: str, undone: Sequence[Any], files: Iterable[Any]) -> None:
    """The files that these snapshots brought. One that joined files holds rows of others, too: then more is remembered than was,
    of messages that are read again."""
    if any(each.operation() != "append" for each in undone):
        return
    brought = {each.sequenceNumber() for each in undone}
    delete = transaction.newDelete().toBranch(day)
    for file in files:
        if file.dataSequenceNumber() in brought:
            delete = delete.deleteFile(file)
    delete.commit()


def go_back(table: Any, snapshots: Any, day: str, before: Before) -> Any:
    if before.snapshot is None:
        return snapshots.removeBranch(day)
    there = before.snapshot.snapshotId()
    return snapshots if there == table.snapshot(day).snapshotId() else snapshots.replaceBranch(day, there)
