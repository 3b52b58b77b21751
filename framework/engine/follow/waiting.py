"""What a follower has not shown yet, by the table's metadata. No JVM is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.engine.feed.changes import NOTHING
from framework.engine.feed.table_source import COMPACTION, changed
from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.model import Follower

_STEP = 1_000_000  # rows; a step that dies is shown again from its begin


@dataclass(frozen=True)
class Step:
    """The snapshots between which the follower shows what changed, and the number of the later one's commit."""

    since: int
    until: int
    commit: int


def rows(table: Metadata, follower: Follower) -> int:
    """About how many rows wait."""
    return sum(map(changed, _news(table, _shown(table, follower))))


def step(table: Metadata, follower: Follower, most: int = _STEP) -> Step | None:
    """The oldest commits that the follower has not shown, of about `most` rows; None where there are none. Compactions are no news."""
    since = _shown(table, follower)
    news = _news(table, since)
    if not news:
        return None
    count = 0
    until = news[-1]
    for each in news:
        count += changed(each)
        if count >= most:
            until = each
            break
    return Step(since, until["snapshot-id"], until.get("sequence-number") or 0)


def _shown(table: Metadata, follower: Follower) -> int:
    return table.refs.get(follower.tag, NOTHING)


def _news(table: Metadata, since: int) -> Sequence[Mapping[str, Any]]:
    """Commits that changed rows since a snapshot, the oldest first. If main does not come from that, as after a rollback, only main."""
    newer: list[Mapping[str, Any]] = []
    for each in table.ancestors():
        if each["snapshot-id"] == since:
            break
        newer.append(each)
    else:
        if since != NOTHING:
            return newer[:1]
    return [each for each in reversed(newer) if _is_news(each)]


def _is_news(snapshot: Mapping[str, Any]) -> bool:
    summary = metadata.summary(snapshot)
    return summary.get("operation") != COMPACTION and changed(snapshot) > 0
