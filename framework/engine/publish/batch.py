"""One batch: an exact range of offsets becomes one commit of one table, or nothing.

Guarantee: each message is in the table or in the bad rows exactly once, whatever dies when (DECISIONS.md, "Exactly once").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from framework import amounts
from framework.engine.context import Context
from framework.engine.iceberg import moves, table_state
from framework.engine.iceberg.jvm_state import staged, state
from framework.engine.iceberg.lake import Lake
from framework.engine.messages import schema_lookup
from framework.engine.publish import bad_rows, sets, side_tables
from framework.engine.publish.adopt import adopt
from framework.engine.publish.bad_row_source import BadRowSource
from framework.engine.publish.pinning import pinned
from framework.engine.publish.sweep import sweep, withdraw
from framework.engine.publish.tables import join_topics, open_table
from framework.engine.rows.counts import Changed, Counted, Unmet
from framework.engine.rows.frame import frame_of
from framework.engine.rules import attempts, protocol, refusals
from framework.engine.rules.protocol import Position, Range, TableState, TopicState, Verdict, verdict
from framework.engine.spark.causes import commit_failed
from framework.engine.spark.java_errors import CommitRefused, CommitUnknown
from framework.engine.spark.reading_errors import named_errors
from framework.engine.staging import Target, admission
from framework.engine.staging import state as states
from framework.errors import BatchError, RefusedError, Transient, Unexpected
from framework.model import Pipeline
from framework.plan.modes import Mode, mode

_TRIES = 5  # how often a batch is staged again because another commit came between
_START = "start"  # the phase in which Spark starts
_MOST = 200  # how often a batch begins again because another run was faster, or because it learned a schema


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A published batch."""

    pipeline: str
    number: int
    read: int
    rows: int
    bad: int
    filtered: int
    changed: Changed | None  # of rows by their keys
    warnings: tuple[Unmet, ...]  # expectations that do not hold
    waiting: int  # messages left up to the last stable offsets
    snapshot: int
    phases: tuple[tuple[str, float], ...]  # seconds

    @property
    def seconds(self) -> float:
        """The batch's seconds without the start of Spark."""
        return sum(seconds for phase, seconds in self.phases if phase != _START)

    @property
    def counts(self) -> list[str]:
        """The outcome of its messages, in words."""
        counts = [amounts.counted(self.rows, "row")]
        if self.changed:
            counts += [f"{count:,} {word}" for word, count in self.changed.words.items() if count]
        counts += [f"{self.bad:,} bad"] if self.bad else []
        counts += [f"{self.filtered:,} filtered"] if self.filtered else []
        return counts + [each.words for each in self.warnings]


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def done(self, phase: str) -> None:
        now = time.perf_counter()
        self._phases[phase] = self._phases.get(phase, 0.0) + now - self._last
        self._last = now

    @property
    def phases(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._phases.items())


def rows_waiting(context: Context, pipeline: Pipeline) -> int:
    """About how many messages or rows wait, without starting Spark; 0: there is nothing to do. Raises a refusal, as a batch would."""
    state = table_state.state(pipeline.table)
    source = context.source(pipeline)
    topic = source.topic_state()
    if state is None or state.position is None or protocol.standing(state) is protocol.Standing.ROLLED_BACK:
        return max(1, source.at_most(topic))
    position = refusals.check(pipeline, state, topic)
    if position.topics.keys() != topic.topics.keys():
        return max(1, source.at_most(topic))
    range_ = source.next(position, topic)
    return max(1, source.lag(range_)) if range_ else int(table_state.pending(pipeline, position))


def next_batch(context: Context, pipeline: Pipeline, replayed: Callable[[Pipeline], BadRowSource] | None = None) -> Batch | None:
    """Publishes the next batch, of the pipeline's source or of bad rows that are replayed; None where nothing waits."""
    clock = Clock()
    context.lake(pipeline)
    context.provide_keys(pipeline)
    clock.done(_START)
    tries, cause = 0, ""
    for _ in range(_MOST):
        with attempts.attempt() as attempt:
            now = pinned(pipeline)
            attempt_run = _Attempt(context, now, attempt, clock, replayed and replayed(now))
            try:
                outcome = attempt_run.run()
            except schema_lookup.UnknownSchemas as unknown:
                pipeline = context.schemas.learn(pipeline, unknown.ids)
                continue
        if not isinstance(outcome, Verdict):
            return outcome
        cause = attempt_run.cause or cause
        # Another batch was published: the table has more rows, so this try does not count.
        tries += outcome is not Verdict.AGAIN
        if tries == _TRIES:
            break
    message = f"the catalog did not accept a batch of {pipeline.table.identifier} in {tries or _MOST} tries"
    if not cause:
        message = f"{tries or _MOST} times another commit to {pipeline.table.identifier} came before this batch's"
    raise commit_failed("table-busy", message, cause, "run again when the other writer is done; nothing was lost")


@dataclass(frozen=True)
class _StagedBatch:
    snapshot: protocol.Snapshot
    position: Position
    counted: Counted
    forget: tuple[str, ...]  # what need not be remembered of deletes any more


class _Attempt:
    """One try, under an id of its own."""

    def __init__(
        self, context: Context, pipeline: Pipeline, attempt: str, clock: Clock, replayed: BadRowSource | None = None
    ) -> None:
        self.context = context
        self.pipeline = pipeline
        self.attempt = attempt
        self.clock = clock
        self.lake: Lake = context.lake(pipeline)
        self.replayed = replayed
        self.source = replayed or context.source(pipeline)
        self.at: Callable[[str], None] = context.at
        self.cause = ""  # the catalog's error text when it last refused a commit

    def run(self) -> Batch | Verdict | None:
        if self.pipeline.table.adopt:
            adopt(self.context, self.lake, self.pipeline)
        table = open_table(self.context, self.lake, self.pipeline)
        opened = state(table)
        # After the table: a topic that was read before it could seem to have lost messages that others have read meanwhile.
        topic = self.source.topic_state()
        self.at("opened")
        position = refusals.check(self.pipeline, opened, topic)
        side_tables.roll_forward(self.lake, self.pipeline, opened.uuid, position)
        if opened.branches:  # before this run adds to them: runs that die each time would leave more and more
            sweep(self.lake, self.pipeline)
        self.at("rolled_forward")
        if position.topics.keys() != topic.topics.keys():
            try:
                join_topics(self.context, self.pipeline, opened, topic, self.attempt)
                joined = Verdict.AGAIN
            except (CommitRefused, CommitUnknown) as error:
                joined = self._restage(error)
            attempts.forget(self.attempt)
            return joined
        range_ = self.source.next(position, topic)
        self.clock.done("open")
        if range_ is None:
            sweep(self.lake, self.pipeline)
            attempts.forget(self.attempt)
            return None
        self.at("ranged")
        try:
            self.lake.branch(table, self.attempt, opened.main)
        except (CommitRefused, CommitUnknown) as error:
            withdraw(self.lake, self.pipeline, self.attempt)  # an answer may be lost and the branch be there
            return self._restage(error)
        self.at("branched")
        try:
            staged_batch = self._stage(table, opened, position, topic, range_)
            self.clock.done("stage")
            outcome = self._publish(opened, topic, staged_batch) if staged_batch else Verdict.RESTAGE
        except (RefusedError, schema_lookup.UnknownSchemas):
            with suppress(BatchError):  # the error that stopped the batch is the one to raise
                withdraw(self.lake, self.pipeline, self.attempt)
            raise
        if staged_batch is None or outcome is not Verdict.DONE:
            withdraw(self.lake, self.pipeline, self.attempt)
            return outcome
        self.at("published")
        if staged_batch.position.is_followed:
            side_tables.roll_forward(self.lake, self.pipeline, opened.uuid, staged_batch.position)
        self.at("published_bad_rows")
        self.clock.done("publish")
        attempts.forget(self.attempt)
        sweep(self.lake, self.pipeline)
        self.at("swept")
        self.clock.done("sweep")
        return self._batch(staged_batch, range_)

    def _stage(self, table: Any, opened: TableState, position: Position, topic: TopicState, range_: Range) -> _StagedBatch | None:
        """The rows on the branch, the bad rows on theirs, and the position that belongs to them."""
        try:
            counted = self._write(table, position, range_, topic)
        except (CommitRefused, CommitUnknown) as error:
            self._restage(error)
            return None
        self.at("staged")
        if counted.unknown_schemas:
            raise schema_lookup.UnknownSchemas(counted.unknown_schemas)
        bad_rows.stop(self.pipeline, opened, position, counted)
        self._expect(counted, counted.unmet)
        if self.replayed or (counted.bad and self.pipeline.bad_rows != "drop"):
            try:
                self._stage_bad_rows(opened, range_, counted)
            except (CommitRefused, CommitUnknown) as error:
                self._restage(error)
                return None
            self.at("staged_bad_rows")
        now = self._table()
        tip = staged(now, self.attempt)
        if tip is None or tip.attempt != self.attempt:
            return None
        with named_errors(self.pipeline):
            of_many = tuple(sets.unmet(self._target(table, range_, None), opened.main, tip.id))
        self._expect(counted, of_many)
        counted = replace(counted, unmet=(*counted.unmet, *of_many))
        bad = counted.bad if self.pipeline.bad_rows != "drop" and not self.replayed else 0
        to = Position(
            attempt=self.attempt, batch=position.batch + 1, cluster=topic.cluster, topics=topic.topics, ends=range_.ends,
            snapshot=tip.id, sequence=tip.sequence,
            spec=self.pipeline.spec, bad=bad, accepted=position.accepted,
            forget=(0, position.batch) if mode(self.pipeline.table.write).whole else None, rebuilt=position.rebuilt,
            replay=self.replayed is not None, newest=max(position.newest, counted.newest_time),
        )  # fmt: skip
        counted = replace(counted, changed=_changed(now, self.attempt, mode(self.pipeline.table.write)))
        return _StagedBatch(tip, to, counted, states.expired(table, self.pipeline.table.states))

    def _stage_bad_rows(self, opened: TableState, range_: Range, counted: Counted) -> None:
        if self.replayed:
            bad_rows.stage_outcomes(self.lake, self.pipeline, self.attempt, opened, range_, counted, self.replayed)
        else:
            bad_rows.stage(self.context, self.lake, self.pipeline, self.attempt, opened, range_, counted)

    def _expect(self, counted: Counted, unmet: Iterable[Unmet]) -> None:
        """Refuses a batch for which an expectation with `else: stop` does not hold."""
        stops = {each.name: each.where for each in self.pipeline.of_batches if each.otherwise == "stop"}
        for failing in unmet:
            if failing.name in stops:
                says = failing.says or f"{failing.rows:,} of {counted.rows:,} rows are not as `{failing.name}` expects"
                where = f"{failing.sample}; {stops[failing.name]}" if failing.sample else stops[failing.name]
                of_rows = any(each.name == failing.name for each in self.pipeline.expectations)
                or_else = " or `else: quarantine`" if of_rows else ""
                hint = f"nothing was published; correct the spec, or set `else: warn`{or_else}"
                raise Unexpected(failing.name, "not-as-expected", f"{says} ({where})", hint)

    def _write(self, table: Any, before: Position, range_: Range, topic: TopicState) -> Counted:
        number = before.batch + 1
        ends = Position(
            attempt=self.attempt, batch=number, cluster=topic.cluster, topics=topic.topics, ends=range_.ends, snapshot=0,
            sequence=0, spec=self.pipeline.spec,
            replay=self.replayed is not None, newest=before.newest,
        )  # fmt: skip
        to = self._target(table, range_, ends)
        messages = self.source.read(self.context.spark, range_, number)
        frame = frame_of(messages, self.pipeline, range_.size, newest_time=before.newest)
        with named_errors(self.pipeline):
            return admission.staged(to, frame, mode(self.pipeline.table.write).stage)

    def _target(self, table: Any, range_: Range, reached: Position | None) -> Target:
        return Target(
            context=self.context,
            lake=self.lake,
            pipeline=self.pipeline,
            attempt=self.attempt,
            table=table,
            reached=reached,
            source=self.source,
            range_=range_,
        )

    def _publish(self, opened: TableState, topic: TopicState, staged_batch: _StagedBatch) -> Verdict:
        """Publishes the batch. Returns DONE, or the verdict why the batch begins again."""
        if self.source.ids() != topic.topics:
            return Verdict.AGAIN
        for left in reversed(range(_TRIES)):
            try:
                transaction = self.lake.begin(self._table())
                now = transaction.table()
                outcome = verdict(opened, state(now), self.attempt, staged(now, self.attempt))
                if outcome is not Verdict.PUBLISH:
                    return outcome
                if left == 0:
                    break
                self.at("checked")
                moves.publish(self.lake, transaction, self.attempt, staged_batch.position, staged_batch.forget)
            except (CommitRefused, CommitUnknown) as error:
                self._restage(error)
                continue  # judged again on the table as it is now, where an attempt whose answer was lost finds its own id
            return Verdict.DONE
        message = f"the catalog did not accept the commit to {self.pipeline.table.identifier} in {_TRIES - 1} tries"
        raise commit_failed("not-published", message, self.cause, "nothing was lost: run again")

    def _restage(self, error: CommitRefused | CommitUnknown) -> Verdict:
        self.cause = str(error)
        return Verdict.RESTAGE

    def _table(self) -> Any:
        table = self.lake.load(self.pipeline.table.identifier)
        if table is None:
            raise Transient(
                "table-dropped", f"the table {self.pipeline.table.identifier} was dropped while a batch ran", "run again"
            )
        return table

    def _batch(self, staged_batch: _StagedBatch, range_: Range) -> Batch:
        counted = staged_batch.counted
        return Batch(
            pipeline=self.pipeline.name, number=staged_batch.position.batch,
            read=range_.size if self.replayed else counted.read, rows=counted.rows, bad=counted.bad,
            filtered=counted.filtered, changed=counted.changed, warnings=counted.unmet, waiting=range_.waiting - range_.size,
            snapshot=staged_batch.snapshot.id,
            phases=self.clock.phases,
        )  # fmt: skip


def _changed(table: Any, attempt: str, write: Mode) -> Changed | None:
    """The changes that a staged batch makes to rows by their keys, from its snapshot."""
    summary = table.snapshot(protocol.BRANCH + attempt).summary()
    counts = {name: summary.get(f"spark.merge-into.num-target-rows-{rows}") for name, rows in write.changes.items()}
    return Changed(**{name: int(count) for name, count in counts.items()}) if counts and None not in counts.values() else None
