"""The commits that a follower has not shown yet, by the table's metadata. No JVM is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import number
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.core.sources.changes import NOTHING
from framework.core.sources.commits import COMPACTION, changed
from framework.plan import Follower

_STEP = 1_000_000  # rows; a step that dies is shown again as a whole


@dataclass(frozen=True)
class FollowStep:
    """The snapshots between which the follower shows what changed, and the number of the later one's commit."""

    since: int
    until: int
    commit: int


def rows(table: Metadata, follower: Follower) -> int:
    """About how many rows wait; for a follower of the newest snapshot, how many commits."""
    if follower.latest_only:
        return _commits(table, _last_followed(table, follower))
    return sum(map(changed, _news(table, _last_followed(table, follower))))


def step(table: Metadata, follower: Follower) -> FollowStep | None:
    """The next step of the follower; None if it has shown all rows. A step that was begun is repeated unchanged."""
    since = _last_followed(table, follower)
    shown_snapshot = table.snapshots.get(table.refs.get(follower.showing, NOTHING))
    if shown_snapshot is not None:
        return _step(since, shown_snapshot)
    if follower.latest_only:
        return _newest_step(table, since)
    return _by_files(table, since) if follower.by_files else by_rows(table, since)


def _newest_step(table: Metadata, since: int) -> FollowStep | None:
    return None if table.main is None or table.main["snapshot-id"] == since else _step(since, table.main)


def _commits(table: Metadata, since: int) -> int:
    ids = [snapshot["snapshot-id"] for snapshot in table.ancestors()]
    return ids.index(since) if since in ids else min(1, len(ids))


def _by_files(table: Metadata, since: int) -> FollowStep | None:
    """The step to the newest snapshot whose files have no deleted rows."""
    for snapshot in table.ancestors():
        if snapshot["snapshot-id"] == since:
            return None
        if _is_whole(snapshot) and _was_seen(snapshot):
            return _step(since, snapshot)
    return None


def _is_whole(snapshot: Mapping[str, Any]) -> bool:
    summary = metadata.summary(snapshot)
    return not any(int(summary.get(f"total-{kind}-deletes", 0)) for kind in ("position", "equality"))


def _was_seen(snapshot: Mapping[str, Any]) -> bool:
    """Whether readers of the table ever saw a snapshot; they never see the empty one inside a rebuild."""
    return protocol.REBUILT not in metadata.summary(snapshot)


def by_rows(table: Metadata, since: int, limit: int = _STEP) -> FollowStep | None:
    """The step over the oldest commits that were not shown, of about `limit` rows. Compactions are no news."""
    news = _news(table, since)
    if not news:
        return None
    count = 0
    until = news[-1]
    for snapshot in news:
        count += changed(snapshot)
        if count >= limit and _was_seen(snapshot):
            until = snapshot
            break
    return _step(since, until)


def _step(since: int, until: Mapping[str, Any]) -> FollowStep:
    return FollowStep(since, until["snapshot-id"], number(until))


def _last_followed(table: Metadata, follower: Follower) -> int:
    return table.refs.get(follower.tag, NOTHING)


def _news(table: Metadata, since: int) -> Sequence[Mapping[str, Any]]:
    """The commits that changed rows since a snapshot, the oldest first. Only main, if main does not descend from that snapshot,
    as after a rollback, or if only a compaction is left of the first commits."""
    newer_snapshots: list[Mapping[str, Any]] = []
    for snapshot in table.ancestors():
        if snapshot["snapshot-id"] == since:
            break
        newer_snapshots.append(snapshot)
    else:
        if since != NOTHING:
            return newer_snapshots[:1]
    news = [snapshot for snapshot in reversed(newer_snapshots) if _is_news(snapshot)]
    if not news and since == NOTHING and metadata.rows(metadata.summary(table.main)):
        return newer_snapshots[:1]
    return news


def _is_news(snapshot: Mapping[str, Any]) -> bool:
    summary = metadata.summary(snapshot)
    return summary.get("operation") != COMPACTION and changed(snapshot) > 0
