"""Rolling a table back to one of its snapshots: its rows, its position and its state, in one commit.

The next run reads the messages after that position again, by the spec at the time of that run; the bad rows of undone
batches are deleted. The table's commit alone decides. Bad rows follow it; if this process dies in between, the next run deletes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from framework.base.errors import RefusedError, SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.at import Moment, main_at, newest_until, snapshot_at
from framework.core.iceberg.main_line import batch_of, gaps, main_line, rules_line
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import refusals
from framework.core.rules.protocol import Position, TableState
from framework.core.rules.refusals import Acceptance
from framework.core.sources import commits
from framework.plan import Keyed, Pipeline


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """The effects of going back to a snapshot. `messages` are read again; `missing` of them Kafka no longer has."""

    snapshot: int
    time: datetime
    undone: int  # commits
    rows: int  # now
    rows_then: int
    messages: int
    missing: int
    undone_before: int | None  # the snapshot that main was at the time asked for, where a rollback has undone it since
    moves: Acceptance


def judged(context: Context, pipeline: Pipeline, target: Moment) -> Rollback:
    """The effects of going back to a snapshot, or to main's newest one at a time or before it. Starts no Spark."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    state = table_state.state_of(table) if table else None
    if table is None or state is None:
        raise refusals.no_table(pipeline)
    if pipeline.computes_all:
        hint = f"correct {pipeline.source_name}, then `sluice run {pipeline.name}` computes it again"
        message = f"each run computes {pipeline.table.identifier} from the whole table {pipeline.source_name}"
        raise RefusedError("cannot-roll-back", message, hint)
    refusals.check_owner(pipeline, state)
    name = pipeline.table.identifier
    snapshot = (
        newest_until(table, pipeline.name, name, target) if isinstance(target, datetime) else snapshot_at(table, name, target)
    )
    line = list(main_line(table))
    main_ids = [entry["snapshot-id"] for entry in line]
    if snapshot not in main_ids:
        hint = f"`sluice history {pipeline.name}` lists those that it has"
        raise SluiceError(
            "no-such-snapshot", f"{pipeline.table.identifier} does not have the rows of snapshot {snapshot} now", hint
        )
    snapshots = {main_snapshot.id: main_snapshot for main_snapshot in rules_line(line)}
    meaning = _meaning(context, pipeline, table, replace(state, snapshots=snapshots), snapshot)
    main_then = main_at(table, target) if isinstance(target, datetime) else None
    return meaning if main_then in main_ids else replace(meaning, undone_before=main_then)


def _meaning(context: Context, pipeline: Pipeline, table: Metadata, state: TableState, snapshot: int) -> Rollback:
    position = state.position
    assert position is not None
    new_position = refusals.going_back(pipeline, replace(state, main=snapshot), position)
    if isinstance(new_position, str):
        message = f"snapshot {snapshot} of {pipeline.table.identifier} says no offsets to return to"
        raise RefusedError("cannot-roll-back", message, _other_way(pipeline, state, position))
    _refuse_expired_sources(pipeline, new_position)
    missing_count = 0 if pipeline.read_tables else sum(_missing_messages(context, pipeline, new_position, position).values())
    snapshot_entry, main_entry = table.snapshots[snapshot], table.snapshots[state.main]
    return Rollback(
        snapshot=snapshot,
        time=table.published(snapshot_entry),
        undone=_undone(table, snapshot, position),
        rows=metadata.rows(metadata.summary(main_entry)),
        rows_then=metadata.rows(metadata.summary(snapshot_entry)),
        messages=refusals.messages_between(new_position.ends, position.ends),
        missing=missing_count,
        undone_before=None,
        moves=Acceptance("", new_position, state, main=snapshot),
    )


def _refuse_expired_sources(pipeline: Pipeline, new_position: Position) -> None:
    """Refuses to go back to where the next changes of a table that is read are unknown: the commit up to which it was read is gone."""
    if expired_commit := commits.expired(pipeline, new_position.ends):
        source, sequence = expired_commit
        message = f"commit {sequence} of {source.identifier}, up to which {pipeline.name} had read it then, has expired"
        hint = f"go back less far, or `sluice rebuild {pipeline.name}` computes it from the whole table"
        raise RefusedError("cannot-roll-back", message, hint)


def _other_way(pipeline: Pipeline, state: TableState, position: Position) -> str:
    """A hint: the oldest batch to which the table can go back, or another command that computes its rows again."""
    positions = (Position.read(snapshot.position) for snapshot in state.snapshots.values() if snapshot.position)
    batches = [earlier_position.batch for earlier_position in positions if earlier_position.batch >= position.rebuilt]
    rebuild_text = f"`sluice rebuild {pipeline.name}` computes it from all messages"
    if not batches:
        return f"bad rows from before its last rebuild or rewind are gone; {rebuild_text}"
    return f"`sluice rollback {pipeline.name} --to batch:{min(batches)}` goes back as far as possible; {rebuild_text}"


def _undone(table: Metadata, snapshot: int, position: Position) -> int:
    """The number of commits since the snapshot. Where some have expired, it is that of the batches."""
    line = list(main_line(table))
    newer_snapshots = line[: [main_snapshot["snapshot-id"] for main_snapshot in line].index(snapshot)]
    batch = batch_of(table, snapshot) if gaps(line).intersection(newer["snapshot-id"] for newer in newer_snapshots) else None
    return len(newer_snapshots) if batch is None else max(len(newer_snapshots), position.batch - batch)


def _missing_messages(context: Context, pipeline: Pipeline, new_position: Position, position: Position) -> dict[str, int]:
    """The numbers of messages, by partition, that should be read again and that Kafka no longer has."""
    starts = context.source(pipeline).topic_state().starts
    ends = {partition: min(starts.get(partition, end), end) for partition, end in position.ends.items()}
    return {partition: max(0, end - new_position.ends.get(partition, 0)) for partition, end in ends.items()}


def readers_that_stop(pipelines: tuple[Pipeline, ...], pipeline: Pipeline) -> Iterator[str]:
    """The names of pipelines that append the changes of this table, and so cannot follow it back."""
    for reader in pipelines:
        for table in reader.read_tables:
            follows = isinstance(reader.table.rule, Keyed) or table.reads in ("all", "changes")
            if table.pipeline == pipeline.name and not follows:
                yield reader.name
