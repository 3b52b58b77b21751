"""One try to publish a batch: its rows in files that nobody knows, then the table and the position in one commit, and then the bad rows.

Guarantee: each message is in the table or in the bad rows exactly once, whatever dies when (DECISIONS.md, "Exactly once").
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from framework.base.errors import BatchError, RefusedError, Transient
from framework.core.context.context import Context
from framework.core.iceberg import moves
from framework.core.iceberg.commit import Outcome, commit, refused
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.unpublished import Unpublished
from framework.core.publish import side_tables, sweep
from framework.core.publish.adopt import adopt
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.publish.stage import Stage, Staged
from framework.core.publish.stopwatch import Stopwatch
from framework.core.publish.tables import join_topics, open_table
from framework.core.rows.pins import Pins
from framework.core.rules import attempts, daily_work, refusals
from framework.core.rules.protocol import Position, Range, TableState, TopicState, Verdict, verdict
from framework.core.schemas import schema_lookup
from framework.core.spark.causes import is_spark_gone
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline

_TRIES = 4  # how often a batch that is staged is committed


@dataclass(frozen=True)
class TopicReading:
    """The topics as they were after the table had this position."""

    uuid: str
    position: Position
    topic: TopicState


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
            prepared = self._staged(self.own.table, opened, position, topic, range_)
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

    def _staged(self, table: Any, opened: TableState, position: Position, topic: TopicState, range_: Range) -> Staged | None:
        """The batch on the attempt's branches, or None to begin again."""
        stage = Stage(
            context=self.context, lake=self.lake, pipeline=self.pipeline, pins=self.pins, attempt=self.attempt, source=self.source,
            replayed=self.replayed,
        )  # fmt: skip
        try:
            return stage.stage(table, opened, position, topic, range_)
        except (CommitRefused, CommitUnknown) as error:
            self._restage(error)
            return None

    def _publish(self, own: Unpublished, opened: TableState, topic: TopicState, prepared: Staged) -> Verdict:
        """Publishes the batch by one commit. Returns DONE, or the verdict by which the batch begins again."""
        if self.source.ids() != topic.topics:
            return Verdict.AGAIN
        properties = daily_work.with_batch(own.table.properties(), self.stopwatch.timed(prepared.work), self.context.clock())
        try:
            moves.prepare(self.lake.begin(own.table), self.attempt, prepared.position, prepared.forget, properties)
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
