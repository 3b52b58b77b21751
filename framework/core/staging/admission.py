"""The rows of a batch that land: none of a forgotten key, and where steps compare them with earlier rows, those that pass.

Guarantee: a step sees the table as it was opened, and the batch is published only onto that. So a row is compared with every row that
landed before it, and with no other.
Cost: the batch is kept in memory, or on the disk, while it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from framework.base.errors import RefusedError
from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame
from framework.core.rules import forgotten
from framework.core.spark.reading_errors import cached_frame, held_frame
from framework.core.staging import Target, ranges, state
from framework.plan import Memory, State
from framework.sql.quote import identifier
from framework.sql.settings import FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Stage = Callable[[Target, Frame], Counted]


def staged(to: Target, frame: Frame, stage: Stage) -> Counted:
    """Stages the rows that land, and the state that steps keep of them."""
    return _without_forgotten(to, frame, lambda rest: _staged(to, rest, stage))


def _staged(to: Target, frame: Frame, stage: Stage) -> Counted:
    memories = _memories(to)
    if not memories:
        return stage(to, frame)
    states = [memory.state for memory in memories if memory.state]
    with admitted(to, frame) as rows, ExitStack() as stack:
        if states:
            stack.enter_context(cached_frame(rows))
        counted = _counted(to, replace(frame, good=rows), stage)
        for each in states if counted.rows and not counted.unknown_schemas else ():
            state.remember(to, each, rows.select(*map(identifier, each.columns)).distinct())
    return counted


def tried(to: Target, frame: Frame) -> Counted:
    """The counts of rows that would land. Nothing is written."""
    return _without_forgotten(to, frame, lambda rest: _tried(to, rest))


def _tried(to: Target, frame: Frame) -> Counted:
    with admitted(to, frame) as rows:
        return _counted(to, replace(frame, good=rows), _written_nowhere)


def _without_forgotten(to: Target, frame: Frame, then: Callable[[Frame], Counted]) -> Counted:
    """The counts of what is done with the rows whose keys were not forgotten. The others are filtered."""
    from pyspark.sql import Observation, functions

    keys = forgotten.read(to.table.properties())
    if keys is None:
        return then(frame)
    if missing := keys.missing(frame.good.columns):
        columns = ", ".join(f"`{name}`" for name in missing)
        raise RefusedError(
            "forgotten-column",
            f"{to.pipeline.table.identifier} recognises persons that were forgotten by {columns}, which its rows no longer have",
            f"keep {columns} in the steps of {to.pipeline.name}; nothing was published",
        )
    one = keys.condition(frame.good.columns) or "false"
    observed = Observation()
    rows = frame.good.observe(observed, functions.expr(f"count_if({one})").alias("rows")).where(f"NOT ({one})")
    counted = then(replace(frame, good=rows))
    if _memories(to):  # then the rows that land were counted
        return counted
    count = 0 if counted.unknown_schemas else min(counted.rows, int(observed.get["rows"]))
    return replace(counted, rows=counted.rows - count, filtered=counted.filtered + count)


def _written_nowhere(to: Target, frame: Frame) -> Counted:
    frame.good.write.format("noop").mode("overwrite").save()
    return to.counted(frame)


def _counted(to: Target, frame: Frame, stage: Stage) -> Counted:
    """The counts of staging: rows that do not land are filtered."""
    from pyspark.sql import Observation, functions

    if not _memories(to):
        return stage(to, frame)
    landed = Observation()
    rows = frame.good.observe(landed, functions.count(functions.lit(1)).alias("rows"))
    counted = stage(to, replace(frame, good=rows))
    count = int(landed.get["rows"])
    return replace(counted, rows=count, filtered=counted.filtered + counted.rows - count)


@contextmanager
def admitted(to: Target, frame: Frame) -> Iterator[DataFrame]:
    """The rows that land, without their places."""
    with ExitStack() as stack:
        rows = frame.good
        for memory in _memories(to):
            rows = memory.admit(rows, Earlier(to, memory.state, stack))
        yield rows.drop(*frame.places)


def _memories(to: Target) -> list[Memory]:
    return [step.memory for step in to.pipeline.steps if step.memory]


class Hashes:
    """A set of numbers that tasks look up (`Hashes.java`). It has each number as often as it was given."""

    def __init__(self, of: Any, stack: ExitStack) -> None:
        self._of = of
        self._stack = stack
        stack.callback(_forget, of)

    def __len__(self) -> int:
        return int(self._of.size())

    def repeated(self) -> Hashes:
        """Those that were given more than once."""
        return Hashes(self._of.repeated(), self._stack)

    def and_also(self, others: Hashes) -> Hashes:
        return Hashes(getattr(self._of, "and")(others._of), self._stack)

    def among(self, others: Hashes) -> int:
        """The number of these that are among the others."""
        return int(self._of.among(others._of))

    def has(self, column: str) -> str:
        """SQL of whether the number of a column is one of them."""
        return f"{FUNCTIONS}.{identifier(f'among:{self._of.id()}')}({identifier(column)})"


def _forget(of: Any) -> None:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError):
        of.forget()


@dataclass(frozen=True)
class Earlier:
    """The earlier rows with which a step compares those of a batch."""

    to: Target
    state: State | None
    stack: ExitStack

    def kept(self, frame: DataFrame) -> DataFrame:
        """The frame, computed once, until the batch is staged."""
        return self.stack.enter_context(held_frame(frame))

    def hashes(self, frame: DataFrame) -> Hashes:
        """The numbers of the frame's first column, until the batch is staged."""
        return Hashes(self.to.spark._jvm.sluice.Hashes.of(frame._jdf), self.stack)

    def value(self, name: str) -> str:
        """SQL of a column of the batch with its type in the table, which may be wider."""
        return f"CAST({identifier(name)} AS {self.to.there[name].sql})"

    @property
    def size(self) -> int:
        """About how many rows a batch has."""
        return self.to.size

    @property
    def time(self) -> str | None:
        """The table's column with a row's event time."""
        return self.to.pipeline.event_time

    def rows(self) -> DataFrame | None:
        """All rows of the state; None where nothing was ever remembered."""
        assert self.state is not None
        return state.remembered(self.to, self.state)

    def near(self, batch: DataFrame, keys: Sequence[str], within: int | None = None) -> DataFrame | None:
        """The table's rows that can have the keys of the batch, and a time at most so many seconds from one of it. None where the table
        has no row. The batch has been kept."""
        to = self.to
        if not int(to.table.currentSnapshot().summary().get("total-records") or 0):
            return None
        conditions = [ranges.near(to, batch, keys)]
        if within is not None and self.time:
            conditions.append(ranges.within(to, batch, self.time, within))
        # Not by the id of its snapshot, which would have the columns as they were then.
        rows: DataFrame = to.spark.table(to.own if to.attempt else to.name).alias("t")
        return rows.where(" AND ".join(filter(None, conditions)) or "true")
