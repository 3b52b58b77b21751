"""The snapshots of a table that are kept: pure functions over their times and over the branches that lead to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice

from framework.core.iceberg.main_line import landings, main_line, rules_line
from framework.core.iceberg.metadata import Metadata
from framework.core.maintain import many_commits
from framework.core.rules import protocol
from framework.plan import Maintain

FLOOR = timedelta(minutes=10)
"""A snapshot that was the newest less than this time ago may still be read, and one that no branch has may still be worked on."""
FLOOR_OF_MANY = timedelta(seconds=10)
"""The same where commits are many and no pipeline reads the table: others read its files, which stay for longer."""
_HOUR = 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The snapshots that other pipelines and followers need: `snapshots`; all that were the newest within `FLOOR` if they are `pinned`; and
    later ones than the commit `unread` as long as those of a table with few commits."""

    snapshots: Set[int] = frozenset()
    pinned: bool = False
    unread: float = math.inf


NO_NEEDS = Needs()


@dataclass(frozen=True)
class Expirable:
    """Snapshots that nothing needs. `are_read`: they are so new that their files may still be read."""

    ids: tuple[int, ...]
    are_read: bool


NOT_ANY = Expirable((), False)


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


def expirable(table: Metadata, maintain: Maintain, current_time: datetime, needs: Needs) -> Expirable:
    """The snapshots that nothing needs: neither the policy, nor a branch or tag, nor the rules of publishing, nor others."""
    line = list(main_line(table))
    main_ids = [snapshot["snapshot-id"] for snapshot in line]
    times = [table.published(snapshot) for snapshot in line]
    ages = [current_time - until for until in _until(times, current_time)]
    unread = min(needs.unread, many_commits.rewritten_since(table, line, times, current_time))
    many = frozenset(many_commits.indexes(table, line, times, unread)) if maintain.adapts else frozenset()
    others = [index for index in range(len(line)) if index not in many]
    kept_indexes = {others[index] for index in kept([times[index] for index in others], maintain, current_time)}
    kept_indexes |= many_commits.kept(times, maintain, current_time) if many else frozenset()
    kept_ids = {main_ids[index] for index in kept_indexes} | needs.snapshots | set(_protected(table, set(main_ids)))
    kept_ids |= {
        snapshot_id
        for index, snapshot_id in enumerate(main_ids)
        if ages[index] < (FLOOR_OF_MANY if index in many and not needs.pinned else FLOOR)
    }
    kept_ids |= protocol.needed(rules_line(line), table.position, kept_ids)
    kept_ids |= set(_leading(table, main_ids, kept_ids))
    other_ids = table.snapshots.keys() - set(main_ids)
    kept_ids |= {snapshot_id for snapshot_id in other_ids if current_time - table.published(table.snapshots[snapshot_id]) < FLOOR}
    are_read = any(
        age.total_seconds() < maintain.thin.all_for and id_ not in kept_ids for age, id_ in zip(ages, main_ids, strict=True)
    )
    return Expirable(tuple(snapshot_id for snapshot_id in table.snapshots if snapshot_id not in kept_ids), are_read)


def _leading(table: Metadata, main_ids: Sequence[int], kept_ids: Set[int]) -> Iterator[int]:
    """The snapshots that lead to kept ones at which main's line would not go on behind a gap, such as those of other programs."""
    landing_ids = {snapshot["snapshot-id"] for snapshot in landings(table)}
    leads = False
    for snapshot_id in reversed(main_ids):
        if leads:
            yield snapshot_id
        leads = (leads or snapshot_id in kept_ids) and snapshot_id not in landing_ids


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
