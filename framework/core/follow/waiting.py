"""The commits that a follower has not shown yet, by the table's metadata. No JVM is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.core.sources.changes import NOTHING
from framework.core.sources.commits import COMPACTION, changed
from framework.plan import Follower

_STEP = 1_000_000  # rows; a step that dies is shown again as a whole


@dataclass(frozen=True)
class Step:
    """The snapshots between which the follower shows what changed, and the number of the later one's commit."""

    since: int
    until: int
    commit: int


def rows(table: Metadata, follower: Follower) -> int:
    """About how many rows wait; of a follower of the newest snapshot, how many commits."""
    if follower.latest_only:
        return _commits(table, _last_followed(table, follower))
    return sum(map(changed, _news(table, _last_followed(table, follower))))


def step(table: Metadata, follower: Follower) -> Step | None:
    """The next step of the follower; None where it has shown all. A step that was begun is repeated as it was."""
    since = _last_followed(table, follower)
    begun = table.snapshots.get(table.refs.get(follower.showing, NOTHING))
    if begun is not None:
        return _step(since, begun)
    if follower.latest_only:
        return _newest_step(table, since)
    return _by_files(table, since) if follower.by_files else by_rows(table, since)


def _newest_step(table: Metadata, since: int) -> Step | None:
    return None if table.main is None or table.main["snapshot-id"] == since else _step(since, table.main)


def _commits(table: Metadata, since: int) -> int:
    ids = [each["snapshot-id"] for each in table.ancestors()]
    return ids.index(since) if since in ids else min(1, len(ids))


def _by_files(table: Metadata, since: int) -> Step | None:
    """The newest snapshot of which no file has deleted rows."""
    for each in table.ancestors():
        if each["snapshot-id"] == since:
            return None
        if _is_whole(each) and _was_seen(each):
            return _step(since, each)
    return None


def _is_whole(snapshot: Mapping[str, Any]) -> bool:
    summary = metadata.summary(snapshot)
    return not any(int(summary.get(f"total-{kind}-deletes", 0)) for kind in ("position", "equality"))


def _was_seen(snapshot: Mapping[str, Any]) -> bool:
    """Whether readers of the table ever saw it: not the empty one inside of a rebuild."""
    return protocol.REBUILT not in metadata.summary(snapshot)


def by_rows(table: Metadata, since: int, most: int = _STEP) -> Step | None:
    """The oldest commits of about `most` rows. Compactions are no news."""
    news = _news(table, since)
    if not news:
        return None
    count = 0
    until = news[-1]
    for each in news:
        count += changed(each)
        if count >= most and _was_seen(each):
            until = each
            break
    return _step(since, until)


def _step(since: int, until: Mapping[str, Any]) -> Step:
    return Step(since, until["snapshot-id"], until.get("sequence-number") or 0)


def _last_followed(table: Metadata, follower: Follower) -> int:
    return table.refs.get(follower.tag, NOTHING)


def _news(table: Metadata, since: int) -> Sequence[Mapping[str, Any]]:
    """Commits that changed rows since a snapshot, the oldest first. If main does not come from that, as after a rollback, or of the first
    commits only a compaction is left: only main."""
    newer: list[Mapping[str, Any]] = []
    for each in table.ancestors():
        if each["snapshot-id"] == since:
            break
        newer.append(each)
    else:
        if since != NOTHING:
            return newer[:1]
    news = [each for each in reversed(newer) if _is_news(each)]
    if not news and since == NOTHING and metadata.rows(metadata.summary(table.main)):
        return newer[:1]
    return news


def _is_news(snapshot: Mapping[str, Any]) -> bool:
    summary = metadata.summary(snapshot)
    return summary.get("operation") != COMPACTION and changed(snapshot) > 0
