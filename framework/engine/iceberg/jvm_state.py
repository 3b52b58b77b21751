"""What the rules of publishing need to know of a table that Spark's JVM has loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from framework.engine.rules import attempts, protocol
from framework.engine.rules.protocol import Position, Snapshot, TableState


def state(table: Any) -> TableState:
    """What the rules need to know of a loaded table; main's parents as far back as the position's snapshot."""
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
    )


def staged(table: Any, attempt: str) -> Snapshot | None:
    """What stands at the tip of the attempt's branch."""
    tip = table.snapshot(protocol.BRANCH + attempt)
    return None if tip is None else _snapshot(tip)


def _ancestors(table: Any, snapshot: Any, until: int | None) -> Iterator[tuple[int, Snapshot]]:
    while snapshot is not None:
        yield snapshot.snapshotId(), _snapshot(snapshot)
        if snapshot.snapshotId() == until or snapshot.parentId() is None:
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
    )


def branches(table: Any) -> Iterator[tuple[str, Any]]:
    """Those of attempts."""
    refs = table.refs()
    for name in names(table):
        if name.startswith(protocol.BRANCH) and refs[name].isBranch():
            yield name, refs[name]


def attempts_of(branches: Iterable[str]) -> list[str]:
    """The attempts whose branches these are; whoever may change a table can call a branch anything."""
    ids = (name.removeprefix(protocol.BRANCH) for name in branches if name.startswith(protocol.BRANCH))
    return [name for name in ids if attempts.is_name(name)]


def attempting(table: Any) -> list[str]:
    """Which have a branch of it."""
    return attempts_of(names(table))


def names(table: Any) -> list[str]:
    """Of branches and tags. By Py4J's own iterators, which end with an error of Java, this would take as long as a commit."""
    keys = table.refs().keySet().toArray()
    return [keys[at] for at in range(len(keys))]
