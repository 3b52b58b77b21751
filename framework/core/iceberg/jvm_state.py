"""The state of a table that Spark's JVM has loaded, as the rules of publishing need it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from framework.core.rules import attempts, protocol
from framework.core.rules.protocol import Position, Snapshot, TableState


def state(table: Any) -> TableState:
    """The state of a loaded table, with main's parents back to the position's snapshot."""
    properties = table.properties()
    text = properties.get(protocol.POSITION)
    position = Position.read(text) if text else None
    main = table.currentSnapshot()
    tips = {name: ref.snapshotId() for name, ref in branches(table)}
    snapshots = dict(_ancestors(table, main, position.snapshot if position else None))
    for tip in tips.values():
        snapshot = table.snapshot(tip)
        if snapshot is not None:
            snapshots.setdefault(tip, _snapshot(snapshot))
    return TableState(
        uuid=str(table.uuid()),
        main=main.snapshotId() if main else -1,
        snapshots=snapshots,
        position=position,
        owner=properties.get(protocol.OWNER),
        branches=tips,
        last_sequence=last_sequence(table),
    )


def total(snapshot: Any, name: str) -> int:
    """A total of the table at a snapshot, such as that of `records`."""
    return int(snapshot.summary().get(f"total-{name}") or 0)


def last_sequence(table: Any) -> int:
    """The greatest sequence number that a snapshot of the table has ever had."""
    return int(table.operations().current().lastSequenceNumber())


def staged(table: Any, attempt: str) -> Snapshot | None:
    """The snapshot at the tip of the attempt's branch."""
    tip = table.snapshot(protocol.BRANCH + attempt)
    return None if tip is None else _snapshot(tip)


def _ancestors(table: Any, snapshot: Any, oldest_id: int | None) -> Iterator[tuple[int, Snapshot]]:
    while snapshot is not None:
        yield snapshot.snapshotId(), _snapshot(snapshot)
        if snapshot.snapshotId() == oldest_id or snapshot.parentId() is None:
            return
        snapshot = table.snapshot(snapshot.parentId())


def _snapshot(snapshot: Any) -> Snapshot:
    summary = snapshot.summary()
    return Snapshot(
        snapshot.snapshotId(),
        snapshot.parentId(),
        snapshot.sequenceNumber(),
        attempt=summary.get(protocol.ATTEMPT),
        position=summary.get(protocol.POSITION),
        compacts=snapshot.operation() == "replace",
    )


def branches(table: Any) -> Iterator[tuple[str, Any]]:
    """The branches of attempts. Other programs may give branches and tags any name."""
    refs = table.refs()
    for name in names(table):
        if attempts_of([name]) and refs[name].isBranch():
            yield name, refs[name]


def attempts_of(branches: Iterable[str]) -> list[str]:
    """The attempts of these branches. Other programs may give a branch any name."""
    ids = (name.removeprefix(protocol.BRANCH) for name in branches if name.startswith(protocol.BRANCH))
    return [name for name in ids if attempts.is_name(name)]


def attempting(table: Any) -> list[str]:
    """The attempts with a branch of the table."""
    return attempts_of(name for name, _ in branches(table))


def at_work(table: Any) -> list[str]:
    """The attempts with a branch of the table, and those of this machine that work on it, living and dead. Of other machines' batches
    nothing is known here: the table hears of them by their publishing commit alone."""
    return [*attempting(table), *attempts.of(str(table.uuid()))]


def unused_name(table: Any, name: str) -> str:
    """A name that no branch and no tag has: other programs may have given `name` to one of theirs."""
    taken_names = set(names(table))
    numbered = (f"{name}{number}" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbered) if candidate not in taken_names)


def names(table: Any) -> list[str]:
    """The names of branches and tags. Py4J's own iterators, which end with a Java error, would take as long as a commit."""
    keys = table.refs().keySet().toArray()
    return [keys[index] for index in range(len(keys))]
