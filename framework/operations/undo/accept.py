"""Accepting a refusal: moves the position, or takes the changes, after a person has read what that means."""

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
from framework.core.rules import attempts, recorded_moves, refusals
from framework.core.rules.protocol import Position
from framework.core.rules.refusals import Acceptance
from framework.core.spark.causes import commit_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline


def refusal(context: Context, pipeline: Pipeline) -> RefusedError | None:
    """Why a run of the pipeline is refused, or None. With `bad_rows: stop` this runs a batch, which is published if nothing stops it."""
    try:
        lake = context.lake(pipeline)
        if pipeline.table.adopt and adoptable(lake, pipeline) is not None:
            return None  # the next run takes it over
        table = open_table(context, lake, pipeline)
        refusals.check(pipeline, state(table), context.source(pipeline).topic_state())
        if pipeline.bad_rows == "stop":
            next_batch(context, pipeline)
    except RefusedError as refused:
        return refused
    return None


def accept(context: Context, pipeline: Pipeline, refused: RefusedError) -> None:
    """Does what the refusal's hint said. A killed `accept` can be repeated."""
    with _as_it_was_shown(pipeline):
        _accept(context, pipeline, refused)


def move(context: Context, pipeline: Pipeline, accepts: Acceptance) -> None:
    """Moves the position, in one commit. Refused if the table is not as it was any more when this was judged."""
    with _as_it_was_shown(pipeline):
        _move(context, pipeline, accepts)


@contextmanager
def _as_it_was_shown(pipeline: Pipeline) -> Iterator[None]:
    """Says that the table is not any more what a person was shown."""
    try:
        yield
    except (CommitRefused, CommitUnknown) as error:
        message = f"{pipeline.table.identifier} changed meanwhile, or its catalog did not answer"
        hint = "give the same command again: it shows what it means now"
        raise commit_failed("table-busy", message, str(error), hint) from None


def _accept(context: Context, pipeline: Pipeline, refused: RefusedError) -> None:
    accepts = refused.accepts
    if isinstance(refused, TableRecreated):
        _begin_again(context, pipeline)
    elif isinstance(refused, ColumnsChanged) and isinstance(accepts, tuple):
        accept_changes(context.lake(pipeline), pipeline, accepts)
    elif isinstance(accepts, Acceptance):
        _move(context, pipeline, accepts)
    else:
        raise BatchError("not-acceptable", f"{refused.message}: accepting cannot help", refused.hint)


def _begin_again(context: Context, pipeline: Pipeline) -> None:
    """Creates a new table first, then deletes its predecessor's bad rows, if they are still its predecessor's."""
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
        transaction = lake.begin(table)
        current = state(transaction.table())
        if (current.uuid, current.main, current.position) != (
            accepts.refused.uuid,
            accepts.refused.main,
            accepts.refused.position,
        ):
            raise CommitRefused
        moved = replace(accepts.position, attempt=attempt, batch=accepts.position.batch + 1, bad=0, replay=False)
        if moved.rewound:
            moved = replace(moved, rebuilt=moved.batch)
        if transaction.table().snapshot(moved.snapshot) is None:  # expired, and its tag deleted
            moved = replace(moved, snapshot=current.main, sequence=current.snapshots[current.main].sequence)
        record = _recorded(transaction.table().properties(), accepts, moved)
        moves.move_position(lake, transaction, moved, record, main=accepts.main)
        attempts.forget(attempt)
    side_tables.roll_forward(lake, pipeline, current.uuid, moved)


def _recorded(properties: Any, accepts: Acceptance, moved: Position) -> dict[str, str]:
    """The property that names this move in `sluice history`."""
    operation = recorded_moves.REWIND if moved.rewound else recorded_moves.ACCEPT
    if accepts.main is not None:
        operation = recorded_moves.ROLLBACK
    return recorded_moves.with_move(properties.get(recorded_moves.PROPERTY), operation, moved, accepts.refused, accepts.main)
