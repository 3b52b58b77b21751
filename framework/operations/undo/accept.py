"""Accepting a refusal: moves the position, or makes the changes, after a person has read the consequences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from framework.base.errors import BatchError, ColumnsChanged, RefusedError, TableRecreated
from framework.core.context.context import Context
from framework.core.iceberg import moves
from framework.core.iceberg.jvm_state import state
from framework.core.publish import side_tables
from framework.core.publish.adopt import adoptable
from framework.core.publish.batch import next_batch
from framework.core.publish.tables import accept_changes, create_table, open_table
from framework.core.rules import attempts, journal, recorded_moves, refusals
from framework.core.rules.protocol import Position
from framework.core.rules.refusals import Acceptance
from framework.core.spark.causes import commit_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline


def refusal(context: Context, pipeline: Pipeline) -> RefusedError | None:
    """The refusal of a run of the pipeline, or None. With `bad_rows: stop` this runs a batch, and publishes it if nothing stops it."""
    try:
        lake = context.lake(pipeline)
        if pipeline.table.adopt and adoptable(lake, pipeline) is not None:
            return None  # the next run takes it over
        table = open_table(context, lake, pipeline)
        refusals.check(pipeline, state(table), context.source(pipeline).topic_state())
        if pipeline.bad_rows == "stop":
            next_batch(context, pipeline)
    except RefusedError as error:
        return error
    return None


def accept(context: Context, pipeline: Pipeline, refusal: RefusedError) -> None:
    """Does what the hint of `refusal` said. A killed `accept` can be repeated."""
    with _as_it_was_shown(pipeline):
        _accept(context, pipeline, refusal)


def move(context: Context, pipeline: Pipeline, accepts: Acceptance) -> None:
    """Moves the position in one commit. Raises an error if the table has changed since `accepts` was judged."""
    with _as_it_was_shown(pipeline):
        _move(context, pipeline, accepts)


@contextmanager
def _as_it_was_shown(pipeline: Pipeline) -> Iterator[None]:
    """Raises an error with a hint if a commit fails because the table is no longer as it was shown to a person."""
    try:
        yield
    except (CommitRefused, CommitUnknown) as error:
        message = f"{pipeline.table.identifier} changed meanwhile, or its catalog did not answer"
        hint = "give the same command again: it shows what it means now"
        raise commit_failed("table-busy", message, str(error), hint) from None
    journal.record_moved(pipeline.journal_name)


def _accept(context: Context, pipeline: Pipeline, refusal: RefusedError) -> None:
    accepts = refusal.accepts
    if isinstance(refusal, TableRecreated):
        _begin_again(context, pipeline)
    elif isinstance(refusal, ColumnsChanged) and isinstance(accepts, tuple):
        accept_changes(context.lake(pipeline), pipeline, accepts)
    elif isinstance(accepts, Acceptance):
        _move(context, pipeline, accepts)
    else:
        raise BatchError("not-acceptable", f"{refusal.message}: accepting cannot help", refusal.hint)


def _begin_again(context: Context, pipeline: Pipeline) -> None:
    """Creates a new table first, and then deletes the bad rows in its side tables, if they are still its predecessor's."""
    lake = context.lake(pipeline)
    if lake.load(pipeline.table.identifier) is None:
        create_table(context, lake, pipeline)
    side_tables.begin_again(lake, pipeline)


def _move(context: Context, pipeline: Pipeline, accepts: Acceptance) -> None:
    lake = context.lake(pipeline)
    table = lake.load(pipeline.table.identifier)
    if table is None:
        raise CommitRefused
    current = state(table)
    if current.position is not None:
        side_tables.roll_forward(lake, pipeline, current.uuid, current.position)
    with attempts.attempt() as attempt:
        commit = lake.begin(table)
        current = state(commit.table)
        if (current.uuid, current.main, current.position) != (
            accepts.refused.uuid,
            accepts.refused.main,
            accepts.refused.position,
        ):
            raise CommitRefused
        new_position = replace(accepts.position, attempt=attempt, batch=accepts.position.batch + 1, bad=0, replay=False)
        if new_position.rewound:
            new_position = replace(new_position, rebuilt=new_position.batch)
        if commit.table.snapshot(new_position.snapshot) is None:  # expired, and its tag deleted
            new_position = replace(new_position, snapshot=current.main, sequence=current.snapshots[current.main].sequence)
        record = _recorded(commit.table.properties(), accepts, new_position)
        moves.move_position(commit, new_position, record, main=accepts.main)
        attempts.forget(attempt)
    side_tables.roll_forward(lake, pipeline, current.uuid, new_position)


def _recorded(properties: Any, accepts: Acceptance, new_position: Position) -> dict[str, str]:
    """The property that names this move in `sluice history`."""
    operation = recorded_moves.REWIND if new_position.rewound else recorded_moves.ACCEPT
    if accepts.main is not None:
        operation = recorded_moves.ROLLBACK
    return recorded_moves.with_move(
        properties.get(recorded_moves.PROPERTY), operation, new_position, accepts.refused, accepts.main
    )
