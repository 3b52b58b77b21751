"""The commits of a table, from its metadata and that of its bad rows. Read-only.

Limit: expired snapshots are missing. The start of a batch is unknown if it was a rebuild, if commits before it have expired, or if the
position was moved without a batch, by `sluice accept` or for a new topic, and nothing records that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import gaps, main_line
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import forgotten, protocol
from framework.core.rules.protocol import Partition, Position
from framework.operations.observe.main_moves import MainMove, main_moves
from framework.plan import Pipeline

_OPERATIONS = {
    protocol.COMPACTED: "compaction", protocol.REBUILT: "rebuild", forgotten.FORGETS: "forget", protocol.PINNED: "marker",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One snapshot of the table's main branch, or a move of main or of the position. `offsets` has each partition, its first offset
    if known, and the offset after its last; `bad` is None where it is unknown."""

    snapshot: int | None  # None for a move of main or of the position
    time: datetime
    ours: bool
    author: str
    operation: str  # Sluice's name, or Iceberg's
    added: int | None
    deleted: int | None
    batch: int | None = None  # None for a commit that is not Sluice's; 0 is the table's birth
    bad: int | None = None
    offsets: tuple[tuple[Partition, int | None, int], ...] = ()
    spec: str = ""  # a digest; empty for commits that do not name it
    spec_changed: bool = False  # whether the spec changed since the batch before
    moved: bool = False  # whether the position was moved since the batch before
    by_rebuild: bool = False  # whether a rebuild made it
    older_expired: bool = False  # whether commits right before it have expired
    move: MainMove | None = None


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
    position = table.position
    bad_counts = _bad_rows_by_attempt(pipeline, metadata.read(pipeline.table.catalog, pipeline.table.bad_rows), position)
    snapshots = list(main_line(table))
    moves = main_moves(table)
    listed_snapshots = [snapshot for snapshot in snapshots if not _is_part_of(snapshot, moves)]
    ids_above_gaps = frozenset(_above_gaps(snapshots, {snapshot["snapshot-id"] for snapshot in listed_snapshots}))
    listed_commits = [_commit(table, snapshot, position, bad_counts) for snapshot in listed_snapshots]
    marked_commits = [
        (replace(commit, older_expired=commit.snapshot in ids_above_gaps), commit_position)
        for commit, commit_position in listed_commits
    ]
    commits = _with_changes(marked_commits, moves)
    commits_and_moves = tuple(_with_moves([commit for commit, _ in commits], moves))
    main_ids = {snapshot["snapshot-id"] for snapshot in snapshots}
    former_ids = {snapshot["snapshot-id"] for snapshot in table.document.get("snapshot-log") or ()} - main_ids
    expired = bool(snapshots) and snapshots[-1].get("parent-snapshot-id") is not None
    rolled_back = len(former_ids & table.snapshots.keys())
    return History(commits_and_moves, expired, rolled_back, position.spec if position else "")


def _above_gaps(snapshots: Sequence[Mapping[str, Any]], listed_ids: Set[int]) -> Iterator[int]:
    """The ids of the listed snapshots between which and the next one listed a snapshot has expired."""
    gap_ids, last_listed = gaps(snapshots), None
    for snapshot in snapshots[:-1]:
        last_listed = snapshot["snapshot-id"] if snapshot["snapshot-id"] in listed_ids else last_listed
        if snapshot["snapshot-id"] in gap_ids and last_listed is not None:
            yield last_listed


def _is_part_of(snapshot: Mapping[str, Any], moves: Sequence[MainMove]) -> bool:
    """Whether a snapshot without rows only marks one of these moves."""
    parent = snapshot.get("parent-snapshot-id")
    return protocol.PINNED in metadata.summary(snapshot) and any(move.record and move.main_after == parent for move in moves)


def _with_moves(commits: Sequence[Commit], moves: Sequence[MainMove]) -> Iterator[Commit]:
    """The commits, and each move before the newest commit that is older. Both have the newest first."""
    next_moves = list(moves)
    for commit in commits:
        while next_moves and _is_newer(next_moves[0], commit):
            yield _moved(next_moves.pop(0))
        yield commit


def _is_newer(move: MainMove, commit: Commit) -> bool:
    """Whether the move is newer than the commit: by batch numbers if both have one, since two machines' clocks may differ."""
    if move.record is not None and commit.batch is not None:
        return move.record.batch > commit.batch
    return move.time >= commit.time


def _moved(move: MainMove) -> Commit:
    record = move.record
    ends = sorted(record.ends.items(), key=_ordered) if record else ()
    return Commit(
        snapshot=None, time=move.time, ours=record is not None, author="Sluice" if record else "", operation=move.operation,
        added=None if move.rows is None else max(0, move.rows), deleted=None if move.rows is None else max(0, -move.rows),
        batch=record.batch if record else None, offsets=tuple((partition, None, end) for partition, end in ends), move=move,
    )  # fmt: skip


def _commit(
    table: Metadata, snapshot: Mapping[str, Any], position: Position | None, bad_counts: Mapping[str, int | None] | None
) -> tuple[Commit, Position | None]:
    """A commit from a snapshot's summary, and its position. The last batch's spec comes from the table's position."""
    summary = metadata.summary(snapshot)
    is_ours = any(key.startswith("sluice.") for key in summary)
    engine = " ".join(summary[key] for key in ("engine-name", "engine-version") if key in summary)
    commit = Commit(
        snapshot=snapshot["snapshot-id"],
        time=table.published(snapshot),
        ours=is_ours,
        author="Sluice" if is_ours else engine,
        operation=_operation(summary),
        added=int(summary.get("added-records", 0)),
        deleted=_deleted(summary),
    )
    if protocol.POSITION not in summary:
        return commit, None
    commit_position = Position.read(summary[protocol.POSITION])
    if forgotten.FORGETS in summary:  # its position is that of the batch before
        return commit, commit_position
    if commit_position.replay or (commit_position.is_rebuild and commit_position.attempt != protocol.BORN):
        commit = replace(commit, operation="replay" if commit_position.replay else "rebuild")
    if position and position.attempt == commit_position.attempt:
        commit_position = replace(commit_position, spec=position.spec)
    bad_count = (
        None
        if bad_counts is None or commit_position.attempt == protocol.BORN
        else bad_counts.get(commit_position.attempt, bad_counts.get("", 0))
    )
    return replace(commit, batch=commit_position.batch, bad=bad_count, spec=commit_position.spec), commit_position


def _operation(summary: Mapping[str, str]) -> str:
    """The name of an operation of Sluice that was no batch; otherwise Iceberg's operation."""
    return next((name for key, name in _OPERATIONS.items() if key in summary), summary.get("operation", ""))


def _deleted(summary: Mapping[str, str]) -> int:
    """Rows of removed files, and rows newly marked as deleted; marks of removed files were counted before."""
    file_rows, marked_rows, unmarked_rows = (
        int(summary.get(name, 0)) for name in ("deleted-records", "added-position-deletes", "removed-position-deletes")
    )
    return file_rows + marked_rows - unmarked_rows


def _with_changes(
    commits: list[tuple[Commit, Position | None]], moves: Sequence[MainMove]
) -> Iterator[tuple[Commit, Position | None]]:
    """Each commit with its changes since the batch before it, which follows it in this order, or since the move that came between."""
    moved_ends = {move.record.batch: move.record.ends for move in moves if move.record}
    for index, (commit, commit_position) in enumerate(commits):
        if commit_position is None or commit_position.attempt == protocol.BORN or commit.batch is None:
            yield commit, commit_position
            continue
        previous_index = next((older for older in range(index + 1, len(commits)) if commits[older][1] is not None), len(commits))
        previous_position = commits[previous_index][1] if previous_index < len(commits) else None
        has_gap = any(newer_commit.older_expired for newer_commit, _ in commits[index:previous_index])
        is_known = commit_position.batch - 1 in moved_ends or (
            previous_position is not None and commit_position.batch == previous_position.batch + 1
        )
        is_moved = previous_position is not None and not is_known and not commit_position.is_rebuild and not has_gap
        starts = (
            moved_ends.get(commit_position.batch - 1, previous_position.ends if previous_position else {})
            if is_known and not commit_position.is_rebuild
            else {}
        )
        offsets = tuple(
            (partition, starts.get(partition), end) for partition, end in sorted(commit_position.ends.items(), key=_ordered)
        )
        is_changed = (
            previous_position is not None
            and bool(previous_position.spec and commit_position.spec)
            and previous_position.spec != commit_position.spec
        )
        yield (
            replace(commit, offsets=offsets, spec_changed=is_changed, moved=is_moved, by_rebuild=commit_position.is_rebuild),
            commit_position,
        )


def _ordered(pair: tuple[Partition, int]) -> tuple[str, int]:
    return protocol.parted(pair[0])


def _bad_rows_by_attempt(
    pipeline: Pipeline, table: Metadata | None, position: Position | None
) -> Mapping[str, int | None] | None:
    """Bad rows by attempt, with the default under ""; None where bad rows are not kept."""
    if pipeline.bad_rows == "drop":
        return None
    counts: dict[str, int | None] = {"": 0}
    snapshots = list(main_line(table)) if table else []
    for snapshot in snapshots:
        summary = metadata.summary(snapshot)
        source = table.snapshots.get(int(summary["source-snapshot-id"])) if table and "source-snapshot-id" in summary else None
        attempt = summary.get(protocol.ATTEMPT) or metadata.summary(source).get(protocol.ATTEMPT)
        if attempt:
            counts[attempt] = int(summary.get("added-records", 0))
    if gaps(snapshots):
        counts[""] = None  # it may have expired
    if position:
        counts[position.attempt] = position.bad
    return counts
