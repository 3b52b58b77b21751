"""One try to publish a batch: its rows in files that nobody knows, then the table and the position in one commit, and then the bad rows.

Guarantee: each message is in the table or in the bad rows exactly once, whatever dies when (DECISIONS.md, "Exactly once").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from framework.base.errors import BatchError, RefusedError, Transient, Unexpected
from framework.core.context.context import Context
from framework.core.iceberg import moves
from framework.core.iceberg.commit import Outcome, commit, refused
from framework.core.iceberg.jvm_state import staged, state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.unpublished import Unpublished
from framework.core.publish import bad_rows, sets, side_tables, sweep
from framework.core.publish.adopt import adopt
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.tables import join_topics, open_table
from framework.core.rows.counts import BatchCounts, Changed, UnmetExpectation
from framework.core.rows.frame import frame_of
from framework.core.rows.pins import Pins
from framework.core.rules import attempts, protocol, refusals
from framework.core.rules.protocol import Position, Range, TableState, TopicState, Verdict, verdict
from framework.core.schemas import schema_lookup
from framework.core.spark.causes import is_spark_gone
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.core.spark.reading_errors import named_errors
from framework.core.staging import StagingTarget, admission, state as states
from framework.plan import Pipeline
from framework.plan.write import Write

_TRIES = 4  # how often a batch that is staged is committed


class Stopwatch:
    """Seconds by phase."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def done(self, phase: str) -> None:
        moment = time.perf_counter()
        self._phases[phase] = self._phases.get(phase, 0.0) + moment - self._last
        self._last = moment

    @property
    def phases(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._phases.items())


@dataclass(frozen=True)
class TopicReading:
    """The topics as they were after the table had this position."""

    uuid: str
    position: Position
    topic: TopicState


@dataclass(frozen=True, kw_only=True)
class Staged:
    """A batch on its branch, and the position that is published with it."""

    range_: Range
    snapshot: protocol.Snapshot
    position: Position
    counted: BatchCounts
    forget: tuple[str, ...]  # branches of state that have expired


class Attempt:
    """One try to publish a batch, under an id of its own."""

    def __init__(
        self,
        context: Context,
        pipeline: Pipeline,
        pins: Pins,
        attempt: str,
        stopwatch: Stopwatch,
        replayed: BadRowSource | None = None,
        reading: TopicReading | None = None,
    ) -> None:
        self.context = context
        self.pipeline = pipeline
        self.pins = pins
        self.attempt = attempt
        self.stopwatch = stopwatch
        self.lake: TableStore = context.lake(pipeline)
        self.replayed = replayed
        self.reading = reading
        self.source = replayed or context.source(pipeline, pins)
        self.reached: Callable[[str], None] = context.reached
        self.own: Unpublished | None = None  # the table as this attempt changes it
        self.cause = ""  # the catalog's error text when it last refused a commit

    def run(self) -> Staged | Verdict | None:
        try:
            return self._run()
        finally:
            if self.own is not None:
                self.own.end()

    def _run(self) -> Staged | Verdict | None:
        if self.pipeline.table.adopt:
            adopt(self.context, self.lake, self.pipeline)
        table, opened, topic, position = self._open()
        # Before this run adds to what attempts have left that died: each run may die.
        if sweep.is_due(self.lake, opened) and sweep.sweep(self.lake, self.pipeline):
            table, opened, topic, position = self._open()  # as it is now
        self.reached("rolled_forward")
        if position.topics.keys() != topic.topics.keys():
            try:
                join_topics(self.context, self.pipeline, opened, topic, self.attempt)
                join_verdict = Verdict.AGAIN
            except (CommitRefused, CommitUnknown) as error:
                join_verdict = self._restage(error)
            attempts.forget(self.attempt)
            return join_verdict
        range_ = self.source.next(position, topic)
        self.stopwatch.done("open")
        if range_ is None:
            attempts.forget(self.attempt)
            return None
        self.reached("ranged")
        self.own = Unpublished(self.lake, table, self.attempt)
        self.lake.branch(self.own.table, self.attempt, opened.main)
        self.reached("branched")
        try:
            prepared = self._stage(self.own.table, opened, position, topic, range_)
            self.stopwatch.done("stage")
            outcome = self._publish(self.own, opened, topic, prepared) if prepared else Verdict.RESTAGE
        except (RefusedError, schema_lookup.UnknownSchemas):
            with suppress(BatchError):  # the error that stopped the batch is the one to raise
                sweep.withdraw(self.lake, self.pipeline, self.attempt, self.own.may_be_published)
            raise
        except Exception as error:
            if self.own.may_be_published or is_spark_gone(error) or not self._has_moved(opened):
                raise
            self.cause = f"the table moved while a batch read it: {error}"
            prepared, outcome = None, Verdict.RESTAGE
        if prepared is None or outcome is not Verdict.DONE:
            sweep.withdraw(self.lake, self.pipeline, self.attempt, self.own.may_be_published)
            return outcome
        self.reached("published")
        if prepared.position.is_followed:
            side_tables.roll_forward(self.lake, self.pipeline, opened.uuid, prepared.position)
        self.reached("published_bad_rows")
        self.stopwatch.done("publish")
        attempts.forget(self.attempt)
        if sweep.is_due(self.lake, opened):
            sweep.sweep(self.lake, self.pipeline)
        self.reached("swept")
        self.stopwatch.done("sweep")
        return prepared

    def _open(self) -> tuple[Any, TableState, TopicState, Position]:
        """The table and the topics, once they are judged, and the bad rows of the last batch are published."""
        table = open_table(self.context, self.lake, self.pipeline)
        opened = state(table)
        attempts.works_on(self.attempt, opened.uuid)
        topic = self._topic_state(opened)
        self.reached("opened")
        position = refusals.check(self.pipeline, opened, topic)
        side_tables.roll_forward(self.lake, self.pipeline, opened.uuid, position)
        return table, opened, topic, position

    def _topic_state(self, opened: TableState) -> TopicState:
        """The topics as they are after the table was opened: before it they could seem to have lost messages that others have read
        meanwhile. If the table has not moved since they were read, that was after it."""
        reading = self.reading
        if reading is not None and not self.replayed and (reading.uuid, reading.position) == (opened.uuid, opened.position):
            return reading.topic
        return self.source.topic_state()

    def _stage(self, table: Any, opened: TableState, position: Position, topic: TopicState, range_: Range) -> Staged | None:
        """Stages the rows on the attempt's branch and the bad rows on theirs. Returns them with their position, or None to begin again."""
        try:
            counted = self._write(table, position, range_, topic)
        except (CommitRefused, CommitUnknown) as error:
            self._restage(error)
            return None
        self.reached("staged")
        if counted.unknown_schemas:
            raise schema_lookup.UnknownSchemas(counted.unknown_schemas)
        if not self.replayed:  # a replay is of rows that are bad already
            bad_rows.stop(self.pipeline, opened, position, counted)
        self._expect(counted, counted.unmet)
        if self.replayed or (counted.bad and self.pipeline.bad_rows != "drop"):
            try:
                self._stage_bad_rows(opened, range_, counted)
            except (CommitRefused, CommitUnknown) as error:
                self._restage(error)
                return None
            self.reached("staged_bad_rows")
        tip = staged(table, self.attempt)
        if tip is None or tip.attempt != self.attempt:
            return None
        with named_errors(self.pipeline):
            unmet_sets = tuple(sets.unmet(self._target(table, range_, None), opened.main, tip.id))
        self._expect(counted, unmet_sets)
        counted = replace(counted, unmet=(*counted.unmet, *unmet_sets))
        bad = counted.bad if self.pipeline.bad_rows != "drop" and not self.replayed else 0
        new_position = Position(
            attempt=self.attempt, batch=position.batch + 1, cluster=topic.cluster, topics=topic.topics, ends=range_.ends,
            snapshot=tip.id, sequence=tip.sequence,
            spec=self.pipeline.spec, bad=bad, accepted=position.accepted,
            forget=(0, position.batch) if self.pipeline.table.write.whole else None, rebuilt=position.rebuilt,
            replay=self.replayed is not None, newest=max(position.newest, counted.newest_time),
        )  # fmt: skip
        counted = replace(counted, changed=_changed(table, self.attempt, self.pipeline.table.write))
        forget = states.expired(table, self.pipeline.table.states, self.context.clock())
        return Staged(range_=range_, snapshot=tip, position=new_position, counted=counted, forget=forget)

    def _stage_bad_rows(self, opened: TableState, range_: Range, counted: BatchCounts) -> None:
        if self.replayed:
            bad_rows.stage_outcomes(self.lake, self.pipeline, self.attempt, opened, range_, counted, self.replayed, self.pins)
        else:
            bad_rows.stage(self.context, self.lake, self.pipeline, self.attempt, opened, range_, counted, self.pins)

    def _expect(self, counted: BatchCounts, unmet: Iterable[UnmetExpectation]) -> None:
        """Refuses a batch for which an expectation with `else: stop` does not hold."""
        stops = {
            expectation.name: expectation.where for expectation in self.pipeline.of_batches if expectation.otherwise == "stop"
        }
        for failing in unmet:
            if failing.name in stops:
                message = failing.says or f"{failing.rows:,} of {counted.rows:,} rows are not as `{failing.name}` expects"
                where = f"{failing.sample}; {stops[failing.name]}" if failing.sample else stops[failing.name]
                is_of_rows = any(expectation.name == failing.name for expectation in self.pipeline.expectations)
                or_else = " or `else: quarantine`" if is_of_rows else ""
                hint = f"nothing was published; correct the spec, or set `else: warn`{or_else}"
                raise Unexpected(failing.name, "not-as-expected", f"{message} ({where})", hint)

    def _write(self, table: Any, position: Position, range_: Range, topic: TopicState) -> BatchCounts:
        number = position.batch + 1
        end_position = Position(
            attempt=self.attempt, batch=number, cluster=topic.cluster, topics=topic.topics, ends=range_.ends, snapshot=0,
            sequence=0, spec=self.pipeline.spec,
            replay=self.replayed is not None, newest=position.newest,
        )  # fmt: skip
        target = self._target(table, range_, end_position)
        messages = self.source.read(self.context.spark, range_, number)
        frame = frame_of(messages, self.pipeline, range_.size, newest_time=position.newest, pins=self.pins)
        with named_errors(self.pipeline):
            return admission.staged(target, frame, self.pipeline.table.write.stage)

    def _target(self, table: Any, range_: Range, reached: Position | None) -> StagingTarget:
        return StagingTarget(
            context=self.context,
            lake=self.lake,
            pipeline=self.pipeline,
            attempt=self.attempt,
            table=table,
            reached=reached,
            source=self.source,
            range_=range_,
            pins=self.pins,
        )

    def _publish(self, own: Unpublished, opened: TableState, topic: TopicState, prepared: Staged) -> Verdict:
        """Publishes the batch by one commit. Returns DONE, or the verdict by which the batch begins again."""
        if self.source.ids() != topic.topics:
            return Verdict.AGAIN
        try:
            moves.prepare(own.table, self.attempt, prepared.position, prepared.forget)
        except CommitRefused as error:
            return self._restage(error)
        identifier = self.pipeline.table.identifier
        given_up = partial(refused, identifier, hint="nothing was lost: run again", code="not-published", tries=_TRIES)
        return commit(partial(self._judge, own, opened, prepared), given_up, _TRIES)

    def _judge(self, own: Unpublished, opened: TableState, prepared: Staged) -> Outcome[Verdict] | Callable[[], Verdict]:
        """The commit; or the verdict, once one was sent: an attempt whose answer was lost finds its own id."""
        if own.may_be_published:
            table = self._table()
            own.judge(table)
            outcome = verdict(opened, state(table), self.attempt, prepared.snapshot)
            if outcome is not Verdict.PUBLISH:
                return Outcome(outcome)
            try:
                own.put_onto(table)
            except CommitRefused:
                return Outcome(Verdict.AGAIN)  # a snapshot came, on a branch of another program or as a fence
        return partial(self._commit, own)

    def _commit(self, own: Unpublished) -> Verdict:
        self.reached("checked")
        try:
            own.publish()
        except (CommitRefused, CommitUnknown) as error:
            self._restage(error)
            raise
        return Verdict.DONE

    def _restage(self, error: CommitRefused | CommitUnknown) -> Verdict:
        self.cause = str(error)
        return Verdict.RESTAGE

    def _has_moved(self, opened: TableState) -> bool:
        """Whether another commit has moved the table, so that files that the attempt reads may be gone. No branch keeps them for it."""
        table = self.lake.load(self.pipeline.table.identifier)
        current = None if table is None else state(table)
        return current is not None and (current.main, current.position) != (opened.main, opened.position)

    def _table(self) -> Any:
        table = self.lake.load(self.pipeline.table.identifier)
        if table is None:
            raise Transient(
                "table-dropped", f"the table {self.pipeline.table.identifier} was dropped while a batch ran", "run again"
            )
        return table


def _changed(table: Any, attempt: str, write: Write) -> Changed | None:
    """The changes that a staged batch makes to rows by their keys, from its snapshot."""
    summary = table.snapshot(protocol.BRANCH + attempt).summary()
    counts = {name: summary.get(f"spark.merge-into.num-target-rows-{rows}") for name, rows in write.changes.items()}
    return Changed(**{name: int(count) for name, count in counts.items()}) if counts and None not in counts.values() else None
