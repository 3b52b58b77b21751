"""The first half of an attempt: the rows of a batch, in files that nobody knows, and the position that will be published with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from framework.base.errors import Unexpected
from framework.core.context.context import Context
from framework.core.iceberg.jvm_state import staged
from framework.core.iceberg.lake import TableStore
from framework.core.kafka import spark_reader
from framework.core.publish import bad_rows, sets
from framework.core.publish.bad_row_source import BadRowSource
from framework.core.rows.counts import BatchCounts, Changed, UnmetExpectation
from framework.core.rows.frame import frame_of, judged_rows
from framework.core.rows.pins import Pins
from framework.core.rules import protocol
from framework.core.rules.protocol import Position, Range, TableState, TopicState
from framework.core.rules.work import Work
from framework.core.schemas import schema_lookup
from framework.core.sources.source import SourceReader
from framework.core.spark.reading_errors import named_errors
from framework.core.staging import StagingTarget, admission, by_column, state as states
from framework.plan import Pipeline
from framework.plan.by_column import second_pass
from framework.plan.write import Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OBJECTS_OF_A_COMMIT = 2  # the list of a snapshot's lists of files, and the table's metadata


@dataclass(frozen=True, kw_only=True)
class Staged:
    """A batch on its branch, and the position that is published with it."""

    range_: Range
    snapshot: protocol.Snapshot
    position: Position
    counted: BatchCounts
    work: Work  # without its seconds, which are not over
    forget: tuple[str, ...]  # branches of state that have expired


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Stages the batch of an attempt: of the pipeline's source or of bad rows that are replayed."""

    context: Context
    lake: TableStore
    pipeline: Pipeline
    pins: Pins
    attempt: str
    source: SourceReader
    replayed: BadRowSource | None

    def stage(self, table: Any, opened: TableState, position: Position, topic: TopicState, range_: Range) -> Staged | None:
        """Stages the rows on the attempt's branch and the bad rows on theirs. Returns them with their position, or None to begin again."""
        counted = self._write(table, position, range_, topic)
        self.context.reached("staged")
        if counted.unknown_schemas:
            raise schema_lookup.UnknownSchemas(counted.unknown_schemas)
        if not self.replayed:  # a replay is of rows that are bad already
            bad_rows.stop(self.pipeline, opened, position, counted)
        self._expect(counted, counted.unmet)
        if self.replayed or (counted.bad and self.pipeline.bad_rows != "drop"):
            self._stage_bad_rows(opened, range_, counted)
            self.context.reached("staged_bad_rows")
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
        summary = table.snapshot(protocol.BRANCH + self.attempt).summary()
        counted = replace(counted, changed=_changed(summary, self.pipeline.table.write))
        forget = states.expired(table, self.pipeline.table.states, self.context.clock())
        bad_codes = {} if self.replayed else counted.codes  # what stays bad was counted when it was read first
        work = _work(counted, bad_codes, summary)
        return Staged(range_=range_, snapshot=tip, position=new_position, counted=counted, work=work, forget=forget)

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
        counted = self._written(target, messages, position, range_)
        return replace(counted, read_bytes=spark_reader.read_bytes(messages))

    def _written(self, target: StagingTarget, messages: DataFrame, position: Position, range_: Range) -> BatchCounts:
        if by_column.judges_rows(target) and by_column.is_possible(target):
            rows = judged_rows(messages, self.pipeline, range_.size, newest_time=position.newest, pins=self.pins)
            with named_errors(self.pipeline):
                stage = admission.staged_by_column if second_pass(self.pipeline) else by_column.stage
                if counted := stage(target, rows):
                    return counted
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


def _changed(summary: Any, write: Write) -> Changed | None:
    """The changes that a staged batch makes to rows by their keys, from its snapshot's summary."""
    counts = {name: summary.get(f"spark.merge-into.num-target-rows-{rows}") for name, rows in write.changes.items()}
    return Changed(**{name: int(count) for name, count in counts.items()}) if counts and None not in counts.values() else None


def _work(counted: BatchCounts, bad_codes: Mapping[str, int], summary: Any) -> Work:
    """The work of a staged batch, from its counts and its snapshot's summary."""
    files = int(summary.get("added-data-files") or 0) + int(summary.get("added-delete-files") or 0)
    return Work(
        batches=1, read=counted.read, rows=counted.rows, filtered=counted.filtered, bad=bad_codes,
        read_bytes=counted.read_bytes, files=files, bytes=int(summary.get("added-files-size") or 0),
        objects=files + int(summary.get("manifests-created") or 0) + _OBJECTS_OF_A_COMMIT,
        changed=counted.changed.words if counted.changed else {}, unmet={unmet.name: unmet.rows for unmet in counted.unmet},
    )  # fmt: skip
