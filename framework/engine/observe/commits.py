"""The commits of a table, from its metadata and that of its bad rows. Read-only.

Limit: expired snapshots are missing. Where the position was moved without a batch, by `sluice accept` or for a new topic, the start of the
next batch is unknown; so is that of a rebuild.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.rules import protocol
from framework.engine.rules.protocol import Partition, Position
from framework.model import Pipeline


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One snapshot of the table's main branch. `offsets` has each partition, its first offset if known, and the offset after its
    last; `bad` is None where it is unknown."""

    snapshot: int
    at: datetime
    ours: bool
    by: str
    operation: str
    added: int
    deleted: int
    batch: int | None = None  # none of a commit that is not Sluice's; 0 is the table's birth
    bad: int | None = None
    offsets: tuple[tuple[Partition, int | None, int], ...] = ()
    spec: str = ""  # a digest; none of commits that do not say it
    spec_changed: bool = False  # since the batch before
    moved: bool = False  # the position, since the batch before
    by_rebuild: bool = False  # by a rebuild


@dataclass(frozen=True)
class History:
    """Commits, the newest first. `expired`: there were older ones; `rolled_back` counts snapshots that main no longer contains."""

    commits: tuple[Commit, ...]
    expired: bool
    rolled_back: int
    spec: str  # of the last batch


def history(pipeline: Pipeline) -> History | None:
    """The table's commits; None where there is no table."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if table is None:
        return None
    text = table.properties.get(protocol.POSITION)
    position = Position.read(text) if text else None
    bad = _bad_rows_by_attempt(pipeline, metadata.read(pipeline.table.catalog, pipeline.table.bad_rows), position)
    snapshots = list(table.ancestors())
    commits = tuple(_with_changes([_commit(table, each, position, bad) for each in snapshots]))
    main_ids = {each["snapshot-id"] for each in snapshots}
    former_ids = {each["snapshot-id"] for each in table.document.get("snapshot-log") or ()} - main_ids
    expired = bool(snapshots) and snapshots[-1].get("parent-snapshot-id") is not None
    rolled_back = len(former_ids & table.snapshots.keys())
    return History(tuple(commit for commit, _ in commits), expired, rolled_back, position.spec if position else "")


def _commit(
    table: Metadata, snapshot: Mapping[str, Any], position: Position | None, bad: Mapping[str, int | None] | None
) -> tuple[Commit, Position | None]:
    """A commit from a snapshot's summary, and its position. The last batch's spec comes from the table's position."""
    summary = metadata.summary(snapshot)
    ours = any(key.startswith("sluice.") for key in summary)
    engine = " ".join(summary[key] for key in ("engine-name", "engine-version") if key in summary)
    commit = Commit(
        snapshot=snapshot["snapshot-id"],
        at=table.published(snapshot),
        ours=ours,
        by="Sluice" if ours else engine,
        operation=summary.get("operation", ""),
        added=int(summary.get("added-records", 0)),
        deleted=_deleted(summary),
    )
    if protocol.POSITION not in summary:
        return commit, None
    to = Position.read(summary[protocol.POSITION])
    if position and position.attempt == to.attempt:
        to = replace(to, spec=position.spec)
    bad_count = None if bad is None or to.attempt == protocol.BORN else bad.get(to.attempt, bad.get("", 0))
    return replace(commit, batch=to.batch, bad=bad_count, spec=to.spec), to


def _deleted(summary: Mapping[str, str]) -> int:
    """Rows of removed files, and rows newly marked as deleted; marks of removed files were counted before."""
    files, marked, unmarked = (
        int(summary.get(name, 0)) for name in ("deleted-records", "added-position-deletes", "removed-position-deletes")
    )
    return files + marked - unmarked


def _with_changes(commits: list[tuple[Commit, Position | None]]) -> Iterator[tuple[Commit, Position | None]]:
    """Each commit with its changes since the batch before it, which follows it in this order."""
    for at, (commit, to) in enumerate(commits):
        if to is None or to.attempt == protocol.BORN:
            yield commit, to
            continue
        before = next((position for _, position in commits[at + 1 :] if position is not None), None)
        moved = before is not None and to.batch != before.batch + 1 and not to.is_rebuild
        starts = before.ends if before and not moved and not to.is_rebuild else {}
        offsets = tuple((each, starts.get(each), end) for each, end in sorted(to.ends.items(), key=_ordered))
        changed = before is not None and bool(before.spec and to.spec) and before.spec != to.spec
        yield replace(commit, offsets=offsets, spec_changed=changed, moved=moved, by_rebuild=to.is_rebuild), to


def _ordered(pair: tuple[Partition, int]) -> tuple[str, int]:
    return protocol.parted(pair[0])


def _bad_rows_by_attempt(
    pipeline: Pipeline, table: Metadata | None, position: Position | None
) -> Mapping[str, int | None] | None:
    """Bad rows by attempt, with the default under ""; None where bad rows are not kept."""
    if pipeline.bad_rows == "drop":
        return None
    counts: dict[str, int | None] = {"": 0}
    last: Mapping[str, Any] = {}
    for last in table.ancestors() if table else ():
        summary = metadata.summary(last)
        source = table.snapshots.get(int(summary["source-snapshot-id"])) if table and "source-snapshot-id" in summary else None
        attempt = summary.get(protocol.ATTEMPT) or metadata.summary(source).get(protocol.ATTEMPT)
        if attempt:
            counts[attempt] = int(summary.get("added-records", 0))
    if last.get("parent-snapshot-id") is not None:
        counts[""] = None  # it may have expired
    if position:
        counts[position.attempt] = position.bad
    return counts
