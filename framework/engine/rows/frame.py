"""An offset range becomes rows: one lazy frame of Spark SQL expressions, the same every time it is run.

Cost: each message is fetched, decoded and walked once. Bad rows come out of the same pass, as long as they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.engine.rows.bad_rows import travelling
from framework.engine.rows.counts import observations
from framework.engine.rows.own_columns import DELETE, NTH, ONLY, TRUNCATES, is_good, of_bad_item
from framework.engine.rows.reading import decode, of_table
from framework.engine.rows.stepping import apply
from framework.model import Pipeline, State
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


@dataclass(frozen=True)
class Frame:
    """The rows of a batch: `good` goes to the table; `observed` has the counts after the write."""

    good: DataFrame
    all_rows: DataFrame  # good and bad
    observed: Observation

    @property
    def bad(self) -> DataFrame:
        """The bad rows, read only where they did not fit into the observation."""
        return self.all_rows.where("_sluice_bad IS NOT NULL").select("_sluice_bad.*")


def _nothing(_state: State) -> DataFrame | None:
    return None


def frame_of(
    messages: DataFrame,
    pipeline: Pipeline,
    size: int,
    carry: bool = True,
    remembered: Callable[[State], DataFrame | None] = _nothing,
) -> Frame:
    """The rows of so many messages. With `carry`, bad rows that are too large for one pass travel without their bytes and are
    counted as such. `remembered` gives what steps remember of earlier batches."""
    from pyspark.sql import Observation

    # Steps that can neither drop nor fail a row come after the observation: what is observed is copied once.
    settled = max((at for at, step in enumerate(pipeline.steps, 1) if step.faults or step.keep or step.each), default=0)
    if pipeline.expectations:
        settled = len(pipeline.steps)
    bad = travelling(pipeline, size, carry)
    rows = of_table(messages, pipeline) if pipeline.source else decode(messages, pipeline, bad, carry_raw=settled > 0)
    for step in pipeline.steps[:settled]:
        rows = apply(rows, step, pipeline, bad)
    if ONLY in rows.columns:
        rows = rows.where(of_bad_item(rows.columns))
    observed = Observation()
    rows = rows.observe(observed, *observations(pipeline, rows.columns, carry))
    good = rows.where(is_good(rows.columns))
    for step in pipeline.steps[settled:]:
        good = apply(good, step, pipeline, bad)
    for step in pipeline.steps:  # behind all others: a row that does not land is not remembered
        if step.memory:
            good = step.memory.admit(good, remembered(step.memory.state))
    good = good.selectExpr(*_written(pipeline, good.columns))
    return Frame(good, rows, observed)


def _written(pipeline: Pipeline, columns: list[str]) -> Iterator[str]:
    """SQL of the table's columns and, for rows by keys, of what a row does."""
    keyed = pipeline.table.keyed
    for column in pipeline.table.sent:
        name = identifier(column.name)
        if keyed and keyed.stands_in and column.name == keyed.order[0]:
            # Kafka's time stands in for one that a message without a value does not have.
            name = f"IF(_sluice_tombstone, CAST(_kafka_timestamp AS {column.type.sql}), {name}) AS {name}"
        elif keyed and keyed.truncates and column.name in keyed.keys:
            name = f"IF({TRUNCATES}, NULL, {name}) AS {name}"
        yield name
    if keyed:
        yield f"{keyed.deletes or 'false'} AS {DELETE}"
        item = "transform(split(nullif(_sluice_item, ''), '[.]'), n -> CAST(n AS INT))"
        yield f"{item if '_sluice_item' in columns else 'CAST(NULL AS array<int>)'} AS {NTH}"
        if keyed.truncates:
            yield TRUNCATES
