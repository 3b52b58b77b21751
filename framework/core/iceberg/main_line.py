"""Main's snapshots across the gaps that thinning has left: an expired snapshot takes the link to all older ones along.

*Guarantee* No snapshot is among them that never was main's: behind a gap, the line goes on at a batch, which only main ever has. Nor is one
that a rollback has undone, as far as the table's list of moves goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol, recorded_moves
from framework.core.rules.protocol import Position, Snapshot


def main_line(table: Metadata) -> Iterator[Mapping[str, Any]]:
    """All snapshots of main that the table still has, the newest first."""
    candidates: list[Mapping[str, Any]] | None = None
    snapshot = table.main
    while snapshot is not None:
        yield snapshot
        newer_number, parent = number(snapshot), snapshot.get("parent-snapshot-id")
        snapshot = table.snapshots.get(parent or -1)
        if snapshot is None and parent is not None:
            candidates = landings(table) if candidates is None else candidates
            while candidates and number(candidates[-1]) >= newer_number:
                candidates.pop()
            snapshot = candidates.pop() if candidates else None


def rules_line(line: Sequence[Mapping[str, Any]]) -> list[Snapshot]:
    """The snapshots of a line as the rules of publishing know them. Behind a gap, the parent of a batch is the next one that is left; of
    another commit it is the expired one, whose position it has."""
    return [
        of_rules(
            snapshot,
            older["snapshot-id"]
            if older and protocol.POSITION in metadata.summary(snapshot)
            else snapshot.get("parent-snapshot-id"),
        )
        for snapshot, older in pairwise([*line, None])
        if snapshot is not None
    ]


def of_rules(snapshot: Mapping[str, Any], parent: int | None) -> Snapshot:
    summary = metadata.summary(snapshot)
    return Snapshot(
        snapshot["snapshot-id"], parent, number(snapshot), attempt=summary.get(protocol.ATTEMPT),
        position=summary.get(protocol.POSITION), compacts=summary.get("operation") == "replace",
    )  # fmt: skip


def gaps(line: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """The ids of the snapshots of a line whose parents have expired."""
    pairs = pairwise([*line, None])
    return frozenset(
        snapshot["snapshot-id"]
        for snapshot, older_snapshot in pairs
        if snapshot and snapshot.get("parent-snapshot-id") not in (None, (older_snapshot or {}).get("snapshot-id"))
    )


def batch_of(table: Metadata, snapshot: int) -> int | None:
    """The batch of a snapshot, or of its nearest ancestor that names one; None if unknown."""
    return next((batch for ancestor in table.ancestors(snapshot) if (batch := own_batch(ancestor)) is not None), None)


def own_batch(snapshot: Mapping[str, Any]) -> int | None:
    """The number of the batch that a snapshot names itself."""
    position = own_position(snapshot)
    return position.batch if position else None


def own_position(snapshot: Mapping[str, Any]) -> Position | None:
    """The position that a snapshot names itself."""
    text = metadata.summary(snapshot).get(protocol.POSITION)
    return _read(text) if text else None


@lru_cache(maxsize=10_000)
def _read(text: str) -> Position:
    """A position, of which maintenance asks again and again."""
    return Position.read(text)


def number(snapshot: Mapping[str, Any]) -> int:
    """The number that the snapshot's commit took."""
    return snapshot.get("sequence-number") or 0


def landings(table: Metadata) -> list[Mapping[str, Any]]:
    """The snapshots at which the line may go on behind a gap, the newest last."""
    other_branches = [name for name in table.refs if name != "main" and table.is_branch(name)]
    if protocol.OF in table.properties:  # a table of bad rows has no positions
        ids = {entry["snapshot-id"] for name in other_branches for entry in table.ancestors(table.refs[name])}
        ids -= {entry["snapshot-id"] for entry in table.ancestors()}
        return sorted((entry for id_, entry in table.snapshots.items() if id_ not in ids), key=number)
    unpublished_attempts = {name.removeprefix(protocol.BRANCH) for name in other_branches}
    undone_ranges = [move.undone for move in recorded_moves.recorded(table.properties) if move.undone]

    def is_undone(snapshot: Mapping[str, Any]) -> bool:
        return any(above < number(snapshot) <= up_to for above, up_to in undone_ranges)

    def is_landing(snapshot: Mapping[str, Any]) -> bool:
        summary = metadata.summary(snapshot)
        if protocol.POSITION not in summary and protocol.COMPACTED not in summary:
            return False
        return summary.get(protocol.ATTEMPT) not in unpublished_attempts and not is_undone(snapshot)

    return sorted(filter(is_landing, table.snapshots.values()), key=number)
