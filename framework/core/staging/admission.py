"""The rows of a batch that land: none of a forgotten key, and where steps compare them with earlier rows, those that pass.

Guarantee: a step sees the table as it was opened, and the batch is published only onto that. So a row is compared with every row that
landed before it, and with no other.
Cost: the batch is kept in memory, or on the disk, while it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from framework.base.errors import RefusedError
from framework.core.iceberg.jvm_state import total
from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame, places
from framework.core.rules import forgotten
from framework.core.spark.reading_errors import cached_frame, held_frame
from framework.core.staging import StagingTarget, by_column, ranges, state
from framework.core.staging.hashes import Hashes
from framework.plan import Remember, State
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Stage = Callable[[StagingTarget, Frame], BatchCounts]
Counts = TypeVar("Counts", BatchCounts, BatchCounts | None)


def staged(target: StagingTarget, frame: Frame, stage: Stage) -> BatchCounts:
    """Stages the rows that land, and the state that steps keep of them."""
    return _without_forgotten(target, frame, lambda rest: _staged(target, rest, stage))


def _staged(target: StagingTarget, frame: Frame, stage: Stage) -> BatchCounts:
    if not _memories(target):
        return stage(target, frame)
    return _remembered(target, frame.good, lambda rows: _counted(target, replace(frame, good=rows), stage))


def staged_by_column(target: StagingTarget, rows: DataFrame) -> BatchCounts | None:
    """Stages those of the good ones of judged rows that land. Returns None if the table has other columns than they."""
    if not by_column.fits(target, rows, places(target.pipeline, rows.columns)):
        return None
    with held_frame(rows, carries=target.pipeline.bad_rows != "drop") as (good_rows, held):
        counted = by_column.counted(target, held.outcome())
        if counted.unknown_schemas:
            return counted

        def add(landing_rows: DataFrame) -> BatchCounts | None:
            count = by_column.add(target, landing_rows)
            return None if count is None else replace(counted, rows=count, filtered=counted.filtered + counted.rows - count)

        return _remembered(target, good_rows, add)


def _remembered(target: StagingTarget, rows: DataFrame, stage: Callable[[DataFrame], Counts]) -> Counts:
    """Stages the rows that land, and the state that steps keep of them."""
    states = [memory.state for memory in _memories(target) if memory.state]
    with admitted(target, rows) as landing_rows, ExitStack() as stack:
        if states:
            stack.enter_context(cached_frame(landing_rows))
        counted = stage(landing_rows)
        for step_state in states if counted and counted.rows and not counted.unknown_schemas else ():
            state.remember(target, step_state, landing_rows.select(*map(identifier, step_state.columns)).distinct())
    return counted


def tried(target: StagingTarget, frame: Frame) -> BatchCounts:
    """Counts the rows that would land, without writing them."""
    return _without_forgotten(target, frame, lambda rest: _tried(target, rest))


def _tried(target: StagingTarget, frame: Frame) -> BatchCounts:
    with admitted(target, frame.good) as rows:
        return _counted(target, replace(frame, good=rows), _written_nowhere)


def _without_forgotten(target: StagingTarget, frame: Frame, stage_rest: Callable[[Frame], BatchCounts]) -> BatchCounts:
    """Stages the rows whose keys were not forgotten by `stage_rest`. Returns its counts, in which the other rows are filtered."""
    from pyspark.sql import Observation, functions

    keys = forgotten.read(target.table.properties())
    if keys is None:
        return stage_rest(frame)
    if missing := keys.missing(frame.good.columns):
        columns = ", ".join(f"`{name}`" for name in missing)
        raise RefusedError(
            "forgotten-column",
            f"{target.pipeline.table.identifier} recognises persons that were forgotten by {columns}, which its rows no longer have",
            f"keep {columns} in the steps of {target.pipeline.name}; nothing was published",
        )
    is_forgotten = keys.condition(frame.good.columns) or "false"
    observed = Observation()
    rows = frame.good.observe(observed, functions.expr(f"count_if({is_forgotten})").alias("rows")).where(f"NOT ({is_forgotten})")
    counted = stage_rest(replace(frame, good=rows))
    if _memories(target):  # then the rows that land were counted
        return counted
    count = 0 if counted.unknown_schemas else min(counted.rows, int(observed.get["rows"]))
    return replace(counted, rows=counted.rows - count, filtered=counted.filtered + count)


def _written_nowhere(target: StagingTarget, frame: Frame) -> BatchCounts:
    frame.good.write.format("noop").mode("overwrite").save()
    return target.counted(frame)


def _counted(target: StagingTarget, frame: Frame, stage: Stage) -> BatchCounts:
    """Stages the rows. Returns the counts, in which rows that do not land are filtered."""
    from pyspark.sql import Observation, functions

    if not _memories(target):
        return stage(target, frame)
    landed = Observation()
    rows = frame.good.observe(landed, functions.count(functions.lit(1)).alias("rows"))
    counted = stage(target, replace(frame, good=rows))
    count = int(landed.get["rows"])
    return replace(counted, rows=count, filtered=counted.filtered + counted.rows - count)


@contextmanager
def admitted(target: StagingTarget, rows: DataFrame) -> Iterator[DataFrame]:
    """The rows that land, without their places."""
    with ExitStack() as stack:
        for memory in _memories(target):
            rows = memory.admit(rows, Earlier(target, memory.state, stack))
        yield rows.drop(*places(target.pipeline, rows.columns))


def _memories(target: StagingTarget) -> list[Remember]:
    return [step.memory for step in target.pipeline.steps if step.memory]


@dataclass
class Earlier:
    """The earlier rows with which a step compares those of a batch."""

    target: StagingTarget
    state: State | None
    stack: ExitStack
    held: list[tuple[DataFrame, Any]] = field(default_factory=list)  # the frames that are kept, and what Java knows of them

    def kept(self, frame: DataFrame, numbers: str) -> tuple[DataFrame, Hashes]:
        """The frame, computed once and kept until the batch is staged, and the numbers of one of its columns."""
        rows, held = self.stack.enter_context(held_frame(frame))
        self.held.append((rows, held))
        return rows, Hashes(held.hashes(numbers), self.stack)

    def hashes(self, frame: DataFrame) -> Hashes:
        """The numbers of the frame's first column, kept until the batch is staged."""
        return Hashes.of(frame, self.stack)

    def value(self, name: str) -> str:
        """SQL of a column of the batch with its type in the table, which may be wider."""
        return self.target.typed(name)

    @property
    def size(self) -> int:
        """About how many rows a batch has."""
        return self.target.size

    @property
    def time(self) -> str | None:
        """The table's column with a row's event time."""
        return self.target.pipeline.event_time

    def rows(self) -> DataFrame | None:
        """All rows of the state; None where nothing was ever remembered."""
        assert self.state is not None
        return state.remembered(self.target, self.state)

    def near(self, batch: DataFrame, keys: Sequence[str], within: int | None = None) -> DataFrame | None:
        """The table's rows that can have the keys of the batch and a time at most `within` seconds from one of the batch. None where the
        table has no row. The batch is a frame that was kept."""
        target = self.target
        if not total(target.table.currentSnapshot(), "records"):
            return None
        conditions = [ranges.near(target, batch, keys, extremes=lambda name: self._extremes(batch, name))]
        if within is not None and self.time:
            conditions.append(ranges.within(target, self.time, within, lambda name: self._extremes(batch, name)))
        # The table is not read by the id of its snapshot, which would have the columns as they were then.
        rows: DataFrame = target.spark.table(target.attempt_branch if target.attempt else target.name).alias("t")
        return rows.where(" AND ".join(filter(None, conditions)) or "true")

    def _extremes(self, batch: DataFrame, name: str) -> DataFrame:
        """A row with the least and the greatest value of a column, and with how many rows have none."""
        from pyspark.sql import DataFrame

        if held := next((held for rows, held in self.held if rows is batch), None):
            return DataFrame(held.extremes(name), self.target.spark)
        return ranges.asked(batch)(name)
