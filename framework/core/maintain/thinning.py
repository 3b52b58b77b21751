"""The snapshots of a table that are kept: pure functions over their times and over the branches that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.table_state import ancestors_of
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.plan import Maintain

FLOOR = timedelta(minutes=10)
"""A snapshot that was the newest less than this time ago may still be read, and one that no branch has may still be worked on."""
_HOUR = 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def kept(times: Sequence[datetime], maintain: Maintain, current_time: datetime) -> frozenset[int]:
    """The indexes of the times that are kept: all times for a while, then one of each interval, up to the oldest age. `times`
    begins with the newest."""
    thin = maintain.thin
    indexes = set(range(min(maintain.keep_at_least, len(times))))
    intervals: set[tuple[int, int]] = set()
    for index, time in enumerate(times):
        age = (current_time - time).total_seconds()
        if age > maintain.keep_snapshots_for:
            break
        step = thin.then_every if age <= thin.all_for + thin.for_ or not thin.then_every_hour else max(thin.then_every, _HOUR)
        interval = (step, int((time - _EPOCH).total_seconds()) // step)
        if age <= thin.all_for or interval not in intervals:
            indexes.add(index)
        intervals.add(interval)
    return frozenset(indexes)


def expirable(table: Metadata, maintain: Maintain, current_time: datetime, needed_ids: Set[int] = frozenset()) -> tuple[int, ...]:
    """The snapshots that nothing needs: neither the policy, nor a branch or tag, nor the rules of publishing, nor other
    pipelines, which need `needed_ids`."""
    lineage = list(ancestors_of(table, None))
    main_ids = [snapshot["snapshot-id"] for snapshot in _line(table)]
    times = [table.published(table.snapshots[snapshot_id]) for snapshot_id in main_ids]
    kept_ids = (
        {main_ids[index] for index in kept(times, maintain, current_time)} | needed_ids | set(_protected(table, set(main_ids)))
    )
    kept_ids |= {
        snapshot_id
        for snapshot_id, until in zip(main_ids, _until(times, current_time), strict=True)
        if current_time - until < FLOOR
    }
    text = table.properties.get(protocol.POSITION)
    kept_ids |= protocol.needed(lineage, Position.read(text) if text else None, kept_ids)
    other_ids = table.snapshots.keys() - set(main_ids)
    kept_ids |= {snapshot_id for snapshot_id in other_ids if current_time - table.published(table.snapshots[snapshot_id]) < FLOOR}
    return tuple(snapshot_id for snapshot_id in table.snapshots if snapshot_id not in kept_ids)


def _line(table: Metadata) -> Iterator[Mapping[str, Any]]:
    """Main's snapshots, the newest first, also those behind others that have been thinned out."""
    refs = table.document.get("refs") or {}
    branches = [table.ancestors(ref["snapshot-id"]) for name, ref in refs.items() if ref["type"] == "branch" and name != "main"]
    own_ids = {snapshot["snapshot-id"] for snapshot in table.ancestors()}
    other_ids = {snapshot["snapshot-id"] for branch in branches for snapshot in branch} - own_ids
    rest = {id_: snapshot for id_, snapshot in table.snapshots.items() if id_ not in other_ids}
    newest_snapshot = table.main
    while newest_snapshot is not None:
        oldest = newest_snapshot
        for snapshot in table.ancestors(newest_snapshot["snapshot-id"]):
            yield snapshot
            rest.pop(snapshot["snapshot-id"], None)
            oldest = snapshot
        if not oldest.get("parent-snapshot-id"):
            return
        older_snapshots = [snapshot for snapshot in rest.values() if _sequence(snapshot) < _sequence(oldest)]
        newest_snapshot = max(older_snapshots, key=_sequence, default=None)


def _sequence(snapshot: Mapping[str, Any]) -> int:
    return snapshot.get("sequence-number") or 0


def _until(times: Sequence[datetime], current_time: datetime) -> Iterator[datetime]:
    """The time until which each snapshot of main was the newest."""
    yield current_time
    yield from times[:-1]


def _protected(table: Metadata, main_ids: Set[int]) -> Iterator[int]:
    """The snapshots that branches and tags need."""
    for name, ref in (table.document.get("refs") or {}).items():
        yield ref["snapshot-id"]
        if name == "main" or ref["type"] != "branch":
            continue
        own_ids = [
            snapshot["snapshot-id"] for snapshot in table.ancestors(ref["snapshot-id"]) if snapshot["snapshot-id"] not in main_ids
        ]
        if name not in table.states:
            yield from own_ids  # of an attempt, or of another program
        else:
            yield from islice(own_ids, int(ref.get("min-snapshots-to-keep") or 1))
