"""One batch: an exact range of offsets becomes one commit of one table, or nothing.

Guarantee: each message is in the table or in the bad rows exactly once, whatever dies when (DECISIONS.md, "Exactly once").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.publish.attempt import Attempt, TopicReading
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.pinning import pinned
from framework.core.publish.stage import Staged
from framework.core.publish.stopwatch import Stopwatch
from framework.core.rows.counts import BatchCounts, Changed, UnmetExpectation
from framework.core.rules import attempts, protocol, refusals
from framework.core.rules.protocol import Verdict
from framework.core.rules.work import START, Work
from framework.core.schemas import schema_lookup
from framework.core.spark.causes import commit_failed
from framework.plan import Pipeline
from framework.systems import secret_uses

_TRIES = 5  # how often a batch is staged again because another commit came between
_MAX_STARTS = 200  # how often a batch begins again because another run was faster, or because it learned a schema


@dataclass(frozen=True)
class Backlog:
    """About how many messages or rows wait; with 0 there is nothing to do. `reading` is of the topics, for the next batch."""

    rows: int
    reading: TopicReading | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A published batch."""

    pipeline: str
    number: int
    read: int
    counted: BatchCounts
    waiting: int  # messages left up to the last stable offsets
    snapshot: int
    attempt: str
    work: Work

    @property
    def rows(self) -> int:
        return self.counted.rows

    @property
    def bad(self) -> int:
        return self.counted.bad

    @property
    def filtered(self) -> int:
        return self.counted.filtered

    @property
    def changed(self) -> Changed | None:
        """The changes of rows by their keys."""
        return self.counted.changed

    @property
    def warnings(self) -> tuple[UnmetExpectation, ...]:
        """The expectations that do not hold."""
        return self.counted.unmet

    @property
    def seconds(self) -> float:
        """The batch's seconds without the start of Spark."""
        return self.work.elapsed


def source_backlog(context: Context, pipeline: Pipeline) -> Backlog:
    """Counts what waits in the source, without starting Spark. Raises a refusal, as a batch would."""
    state = table_state.state(pipeline.table)
    source = context.source(pipeline)
    topic = source.topic_state()
    if state is None or state.position is None or protocol.standing(state) is protocol.Standing.ROLLED_BACK:
        return Backlog(max(1, source.at_most(topic)))
    position = refusals.check(pipeline, state, topic)
    if position.topics.keys() != topic.topics.keys():
        return Backlog(max(1, source.at_most(topic)))
    range_ = source.next(position, topic)
    rows = max(1, source.lag(range_)) if range_ else int(table_state.pending(pipeline, position))
    return Backlog(rows, TopicReading(state.uuid, position, topic) if pipeline.topics else None)


@secret_uses.at_work()
def next_batch(
    context: Context,
    pipeline: Pipeline,
    replayed: Callable[[Pipeline], BadRowSource] | None = None,
    reading: TopicReading | None = None,
) -> Batch | None:
    """Publishes the next batch, of the pipeline's source or of bad rows that are replayed; None where nothing waits. A
    `reading` of the topics of a moment ago saves another one."""
    stopwatch = Stopwatch()
    context.lake(pipeline)
    context.provide_keys(pipeline)
    stopwatch.done(START)
    tries, cause = 0, ""
    for _ in range(_MAX_STARTS):
        with attempts.attempt() as attempt:
            pins = pinned(pipeline, context.clock())
            attempt_run = Attempt(context, pipeline, pins, attempt, stopwatch, replayed and replayed(pipeline), reading)
            reading = None  # another attempt looks for itself: something has changed
            try:
                outcome = attempt_run.run()
            except schema_lookup.UnknownSchemas as unknown:
                pipeline = context.schemas.learn(pipeline, unknown.ids)
                continue
        if not isinstance(outcome, Verdict):
            return _batch(pipeline, outcome, stopwatch, replayed is not None) if outcome else None
        stopwatch.repeats += attempt_run.own is not None  # it was staged, or nearly
        cause = attempt_run.cause or cause
        # Another batch was published: the table has more rows, so this try does not count.
        tries += outcome is not Verdict.AGAIN
        if tries == _TRIES:
            break
    message = f"the catalog did not accept a batch of {pipeline.table.identifier} in {tries or _MAX_STARTS} tries"
    if not cause:
        message = f"{tries or _MAX_STARTS} times another commit to {pipeline.table.identifier} came before this batch's"
    raise commit_failed("table-busy", message, cause, "run again when the other writer is done; nothing was lost")


def _batch(pipeline: Pipeline, published: Staged, stopwatch: Stopwatch, is_replay: bool) -> Batch:
    counted, range_ = published.counted, published.range_
    return Batch(
        pipeline=pipeline.name,
        number=published.position.batch,
        read=range_.size if is_replay else counted.read,
        counted=replace(counted, carried=None),
        waiting=range_.waiting - range_.size,
        snapshot=published.snapshot.id,
        attempt=published.position.attempt,
        work=stopwatch.timed(published.work),
    )
