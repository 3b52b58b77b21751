"""Rebuilds a table by its spec: ordinary batches build it next to the current one, and one commit swaps it in.

Guarantee: readers see the old table or the new one, each message exactly once, whatever dies when (DECISIONS.md, "Rebuild"). Runs of the
pipeline continue meanwhile.
Cost: the second table's files, and until snapshots expire those of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

from framework.base.errors import BadRowsStop, BatchError, RefusedError
from framework.core.context.context import Context
from framework.core.iceberg import deletable_files, table_state
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.second_identity import refuse_changes, second_pipeline, second_uuid
from framework.core.publish import side_tables
from framework.core.publish.batch import Batch, next_batch
from framework.core.publish.sweep import sweep
from framework.core.rules import attempts, protocol
from framework.core.rules.protocol import Partition
from framework.core.run.events import BatchDone, Began, Event, Rebuilt
from framework.core.run.failures import ended
from framework.core.spark.causes import commit_failed
from framework.operations.rebuild import second_table
from framework.operations.rebuild.estimate import Estimate, current_table, estimate_rebuild, lost_rows, start_offsets
from framework.operations.rebuild.publish import Publishing, check_rolled_back, is_behind, load_table, position_of
from framework.plan import Pipeline
from framework.plan.change import Change, changes

POINTS = (
    "rebuild_born",  # the second table exists and is empty
    "rebuild_built",  # it has caught up with the pipeline's own table
    "rebuild_staged",  # its bad rows are on a branch of the table of bad rows
    "rebuild_checked",  # all checks are done; the commit is next
    "rebuild_published",  # the pipeline's own table is the new one
    "rebuild_bad_rows",  # its bad rows are published, too
    "rebuild_ended",  # the second table is deleted
)
_TRIES = 10  # how often it is built and published again because the table gained batches, or was changed


def check_rebuild(context: Context, pipeline: Pipeline, without_lost: bool) -> tuple[Estimate, tuple[Change, ...]]:
    """The estimate of a rebuild and the changes that it makes. Raises the errors with which a rebuild refuses. Starts no Spark."""
    table = current_table(pipeline)
    deletable_files.require_right(pipeline)
    state, existing_table = table_state.state(pipeline.table), table_state.existing(pipeline.table)
    assert state is not None
    rolled_back = check_rolled_back(context, pipeline, state)
    spec_changes = changes(pipeline, existing_table)
    refuse_changes(pipeline, spec_changes)
    swapped_in = table.properties.get(protocol.REBUILT)
    if swapped_in and swapped_in == second_uuid(pipeline) and position_of(state).spec == pipeline.spec:
        return Estimate(ended=True), spec_changes
    estimate = replace(estimate_rebuild(pipeline, context.kafka(pipeline) if pipeline.topics else None), rolled_back=rolled_back)
    if not without_lost:
        refuse_lost(pipeline, estimate)
    return estimate, spec_changes


def refuse_lost(pipeline: Pipeline, estimate: Estimate) -> None:
    hint = f"`sluice rebuild {pipeline.name} --without-lost` rebuilds it anyway"
    if estimate.lost:
        words = "; ".join(loss.words for loss in estimate.lost)
        message = f"a rebuild of {pipeline.table.identifier} would be without {words}"
        raise RefusedError("rows-not-in-kafka", message, hint)
    if estimate.foreign:
        words = "; ".join(commit.words for commit in estimate.foreign)
        message = f"a rebuild of {pipeline.table.identifier} would undo commits of other programs: {words}"
        raise RefusedError("commits-of-others", message, hint)


def rebuild(context: Context, pipeline: Pipeline, estimate: Estimate, stopped: Callable[[], bool]) -> Iterator[Event]:
    """Builds and publishes the rebuild that the estimate has shown. If it is stopped, Rebuilt is missing, and it can be resumed."""
    return ended(pipeline, _rebuild(context, pipeline, estimate, stopped))


def _rebuild(context: Context, pipeline: Pipeline, estimate: Estimate, stopped: Callable[[], bool]) -> Iterator[Event]:
    context.expect(estimate.reads)
    lake = context.lake(pipeline)
    earlier_rebuild = _finish(context, lake, pipeline)
    if earlier_rebuild and estimate.ended:
        yield earlier_rebuild
        return
    yield Began(pipeline, estimate.reads, rebuilds=True)
    new_rebuild = yield from _publish(context, lake, pipeline, estimate, stopped)
    if new_rebuild:
        yield new_rebuild


def _publish(
    context: Context, lake: TableStore, pipeline: Pipeline, estimate: Estimate, stopped: Callable[[], bool]
) -> Generator[Event, None, Rebuilt | None]:
    """Builds and publishes the second table, and repeats that if the table gained batches meanwhile."""
    earlier_id, cause = _rebuilt(lake, pipeline), ""
    for _ in range(_TRIES):
        if _rebuilt(lake, pipeline) != earlier_id:  # another rebuild was published meanwhile
            return _finish(context, lake, pipeline) or _result(lake, pipeline)
        pipeline = context.schemas.current(pipeline)  # a schema may be registered while it is built
        _open(context, lake, pipeline, estimate)
        for batch in _build(context, lake, pipeline):
            yield BatchDone(pipeline, batch)
            if stopped():
                return None
        context.reached("rebuild_built")
        with attempts.attempt() as attempt, attempts.attempt() as use_id:
            publishing = Publishing(context, lake, pipeline, estimate, attempt, use_id)
            new_rebuild = publishing.run()
            cause = publishing.cause or cause
            if new_rebuild is not None:
                _finish_swap(context, lake, pipeline)
                attempts.forget(attempt)
                attempts.forget(use_id)
                sweep(lake, pipeline)
                return new_rebuild
    message = f"{_TRIES} times {pipeline.table.identifier} got another batch before the rebuild was published"
    hint = f"`sluice pause {pipeline.name}`, then `sluice rebuild {pipeline.name}` again: what is built stays"
    raise commit_failed("table-busy", message, cause, hint)


def _finish(context: Context, lake: TableStore, pipeline: Pipeline) -> Rebuilt | None:
    """Finishes a rebuild that died after it was published."""
    own_table, second = lake.load(pipeline.table.identifier), lake.load(second_pipeline(pipeline).table.identifier)
    if own_table is None or second is None or not second_table.was_swapped_in(own_table, second):
        return None
    _finish_swap(context, lake, pipeline)
    sweep(lake, pipeline)
    return _result(lake, pipeline)


def _result(lake: TableStore, pipeline: Pipeline) -> Rebuilt:
    position = position_of(state(load_table(lake, pipeline)))
    return Rebuilt(pipeline, position.rebuilt, position.snapshot, only_ended=True)


def _rebuilt(lake: TableStore, pipeline: Pipeline) -> str | None:
    rebuilt: str | None = load_table(lake, pipeline).properties().get(protocol.REBUILT)
    return rebuilt


def _finish_swap(context: Context, lake: TableStore, pipeline: Pipeline) -> None:
    """Publishes the bad rows and deletes the second table, whose files belong to the pipeline's own table now."""
    current = state(load_table(lake, pipeline))
    side_tables.roll_forward(lake, pipeline, current.uuid, position_of(current))
    context.reached("rebuild_bad_rows")
    second_table.delete_second(lake, pipeline, data=False)
    context.reached("rebuild_ended")


def _open(context: Context, lake: TableStore, pipeline: Pipeline, estimate: Estimate) -> None:
    """Finds the second table to resume, or creates it."""
    own_table = load_table(lake, pipeline)
    side_tables.refuse_leftovers(lake, pipeline, own_table)
    source = context.source(pipeline)
    topic_state = source.topic_state()
    if second_table.find_resumable(lake, pipeline, own_table, topic_state) is not None:
        return
    starts: dict[Partition, int] = {}
    if pipeline.topics:
        table = current_table(pipeline)
        starts = start_offsets(pipeline, source, topic_state, table)
        # Kafka may have fewer messages than the estimate had.
        if tuple(lost_rows(pipeline, table, topic_state, starts)) and not estimate.lost:
            refuse_lost(pipeline, estimate_rebuild(pipeline, context.kafka(pipeline)))
    second_table.create_second(context, lake, pipeline, own_table, starts, position_of(state(own_table)).accepted)
    context.reached("rebuild_born")


def _build(context: Context, lake: TableStore, pipeline: Pipeline) -> Iterator[Batch]:
    """The batches of the second table until it is caught up and has all messages of the pipeline's own table."""
    second = second_pipeline(pipeline)
    while True:
        try:
            batch = next_batch(context, second)
        except BadRowsStop as stop:
            hint = "correct the spec, or set `bad_rows: quarantine`; then rebuild again"
            raise BatchError(stop.code, f"the rebuild stops: {stop.message}", hint) from None
        except RefusedError as refusal:
            if refusal.accepts is None:
                raise
            message = f"the rebuild cannot continue: {refusal.message}"
            raise BatchError(refusal.code, message, f"`sluice rebuild {pipeline.name}` starts it again") from None
        if batch:
            yield batch
        if (batch is None or not batch.waiting) and not is_behind(
            position_of(state(load_table(lake, second))), position_of(state(load_table(lake, pipeline)))
        ):
            return
