"""Rolling a table back to one of its snapshots: its rows, its position and its state, in one commit.

The messages behind that position are read again by the next run, by the spec of then; the bad rows of the batches that are undone are
deleted. The table's commit alone decides; bad rows follow it, and if this process dies between, the next run deletes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from framework.base.errors import RefusedError, SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.at import Moment, main_at, newest_until, snapshot_at
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol, refusals
from framework.core.rules.protocol import Position, TableState
from framework.core.rules.refusals import Acceptance
from framework.plan import Pipeline


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """The effects of going back to a snapshot. `messages` are read again; `gone` of them Kafka no longer has."""

    to: int
    at: datetime
    undone: int  # commits
    rows: int  # now
    rows_then: int
    messages: int
    gone: int
    undone_before: int | None  # the snapshot that main was at the time asked for, where a rollback has undone it since
    moves: Acceptance


def judged(context: Context, pipeline: Pipeline, to: Moment) -> Rollback:
    """The effects of going back to a snapshot, or to main's newest one at a time or before it, without Spark."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    state = table_state.state_of(table) if table else None
    if table is None or state is None:
        raise refusals.no_table(pipeline)
    if pipeline.source and pipeline.source.reads == "all":
        hint = f"correct {pipeline.source.identifier}, then `sluice run {pipeline.name}` computes it again"
        message = f"each run computes {pipeline.table.identifier} from the whole table {pipeline.source.identifier}"
        raise RefusedError("cannot-roll-back", message, hint)
    refusals.check_owner(pipeline, state)
    name = pipeline.table.identifier
    snapshot = newest_until(table, pipeline.name, name, to) if isinstance(to, datetime) else snapshot_at(table, name, to)
    line = [each["snapshot-id"] for each in table.ancestors()]
    if snapshot not in line:
        hint = f"`sluice history {pipeline.name}` lists those that it has"
        raise SluiceError(
            "no-such-snapshot", f"{pipeline.table.identifier} does not have the rows of snapshot {snapshot} now", hint
        )
    meaning = _meaning(context, pipeline, table, replace(state, snapshots=_all(table)), snapshot)
    main_then = main_at(table, to) if isinstance(to, datetime) else None
    return meaning if main_then in line else replace(meaning, undone_before=main_then)


def _meaning(context: Context, pipeline: Pipeline, table: Metadata, state: TableState, to: int) -> Rollback:
    position = state.position
    assert position is not None
    back = refusals.going_back(pipeline, replace(state, main=to), position)
    if isinstance(back, str):
        message = f"snapshot {to} of {pipeline.table.identifier} says no offsets to return to"
        raise RefusedError("cannot-roll-back", message, _other_way(pipeline, state, position))
    gone = 0 if pipeline.source else sum(_gone(context, pipeline, back, position).values())
    then, now = table.snapshots[to], table.snapshots[state.main]
    return Rollback(
        to=to,
        at=table.published(then),
        undone=[each["snapshot-id"] for each in table.ancestors()].index(to),
        rows=metadata.rows(metadata.summary(now)),
        rows_then=metadata.rows(metadata.summary(then)),
        messages=refusals.messages_between(back.ends, position.ends),
        gone=gone,
        undone_before=None,
        moves=Acceptance("", back, state, main=to),
    )


def _other_way(pipeline: Pipeline, state: TableState, position: Position) -> str:
    """The oldest batch to which the table can go back, or what else computes its rows again."""
    positions = (Position.read(snapshot.position) for snapshot in state.snapshots.values() if snapshot.position)
    batches = [earlier.batch for earlier in positions if earlier.batch >= position.rebuilt]
    again = f"`sluice rebuild {pipeline.name}` computes it from all messages"
    if not batches:
        return f"bad rows from before its last rebuild or rewind are gone; {again}"
    return f"`sluice rollback {pipeline.name} --to batch:{min(batches)}` goes back as far as possible; {again}"


def _all(table: Metadata) -> dict[int, protocol.Snapshot]:
    return {each.id: each for each in table_state.ancestors_of(table, None)}


def _gone(context: Context, pipeline: Pipeline, back: Position, position: Position) -> dict[str, int]:
    """Messages that are to be read again, and that Kafka no longer has, by partition."""
    starts = context.source(pipeline).topic_state().starts
    ends = {each: min(starts.get(each, end), end) for each, end in position.ends.items()}
    return {each: max(0, end - back.ends.get(each, 0)) for each, end in ends.items()}


def readers_that_stop(pipelines: tuple[Pipeline, ...], pipeline: Pipeline) -> Iterator[str]:
    """The pipelines that append the changes of this table, and so cannot follow it back."""
    for each in pipelines:
        follows = each.table.keyed is not None or (each.source and each.source.reads in ("all", "changes"))
        if each.source and pipeline.table.identifier in each.sources and not follows:
            yield each.name
