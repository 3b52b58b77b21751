"""Going on from what was refused, once a person has read what it means."""

from __future__ import annotations

from dataclasses import replace

from framework.engine import attempts, bad_rows, refusals
from framework.engine.batch import next_batch
from framework.engine.context import Context
from framework.engine.lake import Refused, state
from framework.engine.refusals import Acceptance
from framework.engine.tables import bear, open_table
from framework.errors import BatchError, RefusedError, TableRecreated
from framework.plan.model import Pipeline


def refusal(context: Context, pipeline: Pipeline) -> RefusedError | None:
    """Why the pipeline does not go on. With `bad_rows: stop` that only a batch can tell, which is published if nothing stops it."""
    try:
        topic = context.kafka(pipeline).look(pipeline.topic)
        table = open_table(context, context.lake(pipeline), pipeline, topic)
        refusals.check(pipeline, state(table), topic)
        if pipeline.bad_rows == "stop":
            next_batch(context, pipeline)
    except RefusedError as refused:
        return refused
    return None


def accept(context: Context, pipeline: Pipeline, refused: RefusedError) -> None:
    """Does what the refusal said that accepting means. Killed halfway, it can be done again."""
    accepts = refused.accepts
    if not isinstance(accepts, Acceptance):
        raise BatchError("not-acceptable", f"{refused.message}: accepting cannot help", refused.hint)
    if isinstance(refused, TableRecreated):
        _begin_anew(context, pipeline)
    else:
        _move(context, pipeline, accepts)


def _begin_anew(context: Context, pipeline: Pipeline) -> None:
    lake = context.lake(pipeline)
    lake.drop(pipeline.table.bad_rows)
    if lake.load(pipeline.table.identifier) is None:
        bear(context, lake, pipeline, context.kafka(pipeline).look(pipeline.topic))


def _move(context: Context, pipeline: Pipeline, accepts: Acceptance) -> None:
    lake = context.lake(pipeline)
    table = lake.load(pipeline.table.identifier)
    found = state(table) if table is not None else None
    if found is None or found.position is None:
        raise BatchError("table-dropped", f"the table {pipeline.table.identifier} is gone", "run the pipeline again")
    bad_rows.roll_forward(lake, pipeline, found.position)
    if accepts.forget_bad_rows_from is not None:
        bad_rows.forget(context, pipeline, accepts.forget_bad_rows_from)
    with attempts.attempt() as attempt:
        known = table.snapshot(accepts.position.snapshot) is not None
        at = accepts.position.snapshot if known else found.main
        sequence = accepts.position.sequence if known else found.snapshots[found.main].sequence
        moved = replace(
            accepts.position, attempt=attempt, batch=found.position.batch + 1, bad=0, snapshot=at, sequence=sequence
        )  # fmt: skip
        transaction = lake.begin(table)
        try:
            if state(transaction.table()) != found:
                raise Refused
            lake.move_position(transaction, moved)
        except Refused:
            hint = "look again: `sluice accept` shows what it means now"
            raise BatchError("table-busy", f"{pipeline.table.identifier} changed while this was accepted", hint) from None
