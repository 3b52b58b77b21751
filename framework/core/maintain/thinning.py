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
"""A snapshot that was the newest until so long ago may still be read, and what no branch has may still be written."""
_HOUR = 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def kept(times: Sequence[datetime], maintain: Maintain, now: datetime) -> frozenset[int]:
    """The places of the times that are kept, the newest first: all for a while, then one of each interval, up to the oldest age."""
    thin = maintain.thin
    keep = set(range(min(maintain.keep_at_least, len(times))))
    intervals: set[tuple[int, int]] = set()
    for at, time in enumerate(times):
        age = (now - time).total_seconds()
        if age > maintain.keep_snapshots_for:
            break
        step = thin.then_every if age <= thin.all_for + thin.for_ or not thin.then_every_hour else max(thin.then_every, _HOUR)
        interval = (step, int((time - _EPOCH).total_seconds()) // step)
        if age <= thin.all_for or interval not in intervals:
            keep.add(at)
        intervals.add(interval)
    return frozenset(keep)


def expirable(table: Metadata, maintain: Maintain, now: datetime, read: Set[int] = frozenset()) -> tuple[int, ...]:
    """The snapshots that nothing needs: neither the policy, a branch or tag, nor the rules of publishing. `read` are those that
    other pipelines need."""
    lineage = list(ancestors_of(table, None))
    main = [each["snapshot-id"] for each in _line(table)]
    times = [table.published(table.snapshots[each]) for each in main]
    keep = {main[at] for at in kept(times, maintain, now)} | read | set(_protected(table, set(main)))
    keep |= {each for each, until in zip(main, _until(times, now), strict=True) if now - until < FLOOR}
    text = table.properties.get(protocol.POSITION)
    keep |= protocol.needed(lineage, Position.read(text) if text else None, keep)
    others = table.snapshots.keys() - set(main)
    keep |= {each for each in others if now - table.published(table.snapshots[each]) < FLOOR}
    return tuple(each for each in table.snapshots if each not in keep)


def _line(table: Metadata) -> Iterator[Mapping[str, Any]]:
    """Main's snapshots, the newest first, also those behind others that have been thinned out."""
    refs = table.document.get("refs") or {}
    ways = [table.ancestors(ref["snapshot-id"]) for name, ref in refs.items() if ref["type"] == "branch" and name != "main"]
    own = {each["snapshot-id"] for each in table.ancestors()}
    elsewhere = {each["snapshot-id"] for way in ways for each in way} - own
    left = {id_: each for id_, each in table.snapshots.items() if id_ not in elsewhere}
    last = table.main
    while last is not None:
        oldest = last
        for each in table.ancestors(last["snapshot-id"]):
            yield each
            left.pop(each["snapshot-id"], None)
            oldest = each
        if not oldest.get("parent-snapshot-id"):
            return
        older = [each for each in left.values() if _sequence(each) < _sequence(oldest)]
        last = max(older, key=_sequence, default=None)


def _sequence(snapshot: Mapping[str, Any]) -> int:
    return snapshot.get("sequence-number") or 0


def _until(times: Sequence[datetime], now: datetime) -> Iterator[datetime]:
    """Until when each snapshot of main was the newest."""
    yield now
    yield from times[:-1]


def _protected(table: Metadata, main: Set[int]) -> Iterator[int]:
    """The snapshots that branches and tags need."""
    for name, ref in (table.document.get("refs") or {}).items():
        yield ref["snapshot-id"]
        if name == "main" or ref["type"] != "branch":
            continue
        own = [each["snapshot-id"] for each in table.ancestors(ref["snapshot-id"]) if each["snapshot-id"] not in main]
        if name not in table.states:
            yield from own  # of an attempt, or of another program
        else:
            yield from islice(own, int(ref.get("min-snapshots-to-keep") or 1))
