"""An offset range becomes rows: one lazy frame of Spark SQL expressions, the same every time it is run.

Cost: each message is fetched, decoded and walked once. Bad rows come out of the same pass, as long as they fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from framework.core.rows.bad_rows import travelling
from framework.core.rows.counts import observations
from framework.core.rows.own_columns import DELETE, NTH, ONLY, TRUNCATES, is_good, of_bad_item, with_open_since
from framework.core.rows.pins import NO_PINS, Pins
from framework.core.rows.reading import rows_of
from framework.core.rows.stepping import apply
from framework.plan import KAFKA_COLUMNS, KAFKA_TOPIC, OLD, AllRows, Column, Keyed, Pipeline, Step
from framework.plan.totals import NTH_ITEM, ORDER, Totals
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


# The columns by which steps with a memory put rows in order, also where the table does not keep them.
_PLACES = (*(column.name for column in (KAFKA_TOPIC, *KAFKA_COLUMNS)), "_sluice_item")


@dataclass(frozen=True)
class Frame:
    """The rows of a batch: `good` goes to the table; `observed` has the counts after the write. Where a step has a memory, the places of
    the rows come along (`places`), and `framework/core/staging/admission.py` decides which rows land."""

    good: DataFrame
    all_rows: DataFrame  # good and bad
    observed: Observation

    @property
    def bad(self) -> DataFrame:
        """The bad rows, read only where they did not fit into the observation."""
        return self.all_rows.where("_sluice_bad IS NOT NULL").select("_sluice_bad.*")


def frame_of(
    messages: DataFrame, pipeline: Pipeline, size: int, carry: bool = True, newest_time: int = 0, pins: Pins = NO_PINS
) -> Frame:
    """The rows of so many messages. With `carry`, bad rows that are too large for one pass travel without their bytes and are
    counted as such. `newest_time` is the greatest time of earlier batches, by which a row can be too late; `pins` say as of when other
    tables are read."""
    from pyspark.sql import Observation

    # Steps that can neither drop nor fail a row come after the observation: what is observed is copied once.
    observed_step_count = max(
        (number for number, step in enumerate(pipeline.steps, 1) if step.faults or step.keep or step.each), default=0
    )
    if pipeline.expectations:
        observed_step_count = len(pipeline.steps)
    bad, messages = travelling(pipeline, size, carry), with_open_since(messages, pipeline, newest_time)
    rows = rows_of(messages, pipeline, bad, carry_raw=observed_step_count > 0)
    rows = _after(pipeline.steps[:observed_step_count], rows, pipeline, bad, pins)
    if ONLY in rows.columns:
        rows = rows.where(of_bad_item(rows.columns))
    observed = Observation()
    rows = rows.observe(observed, *observations(pipeline, rows.columns, carry))
    good = _after(pipeline.steps[observed_step_count:], rows.where(is_good(rows.columns)), pipeline, bad, pins)
    return Frame(good.selectExpr(*_written(pipeline, good.columns), *places(pipeline, good.columns)), rows, observed)


def places(pipeline: Pipeline, columns: Sequence[str]) -> Iterator[str]:
    """The columns by which steps with a memory put rows in order, and that do not go to the table."""
    if pipeline.compares:
        sent = {column.name for column in pipeline.table.sent}
        yield from (name for name in _PLACES if name in columns and name not in sent)


def judged_rows(messages: DataFrame, pipeline: Pipeline, size: int, newest_time: int = 0, pins: Pins = NO_PINS) -> DataFrame:
    """The rows of so many messages, each with the table's columns, with its place where a step has a memory, and with what becomes of it:
    for a table that good rows are added to (`Judged.java`). Nothing is observed, so that a row is made once."""
    bad = travelling(pipeline, size, True)
    rows = rows_of(with_open_since(messages, pipeline, newest_time), pipeline, bad, carry_raw=bool(pipeline.steps))
    rows = _after(pipeline.steps, rows, pipeline, bad, pins)
    judging: list[str] = [name for name in ("_sluice_bad", "_sluice_keep", "_sluice_unknown") if name in rows.columns]
    judging += [f"NOT {expectation.holds} AS _sluice_unmet{index}" for index, expectation in enumerate(pipeline.expectations)]
    if pipeline.expectations and "_kafka_offset" in rows.columns:
        judging.append("struct(_kafka_partition, _kafka_offset) AS _sluice_message")
    return rows.selectExpr(*_written(pipeline, rows.columns), *places(pipeline, rows.columns), *judging)


def _after(steps: Iterable[Step], rows: DataFrame, pipeline: Pipeline, bad: str, pins: Pins) -> DataFrame:
    """The rows after these steps."""
    return reduce(lambda before, step: apply(before, step, pipeline, bad, pins), steps, rows)


def _written(pipeline: Pipeline, columns: list[str]) -> Iterator[str]:
    """SQL of the table's columns and, for rows by keys, of what a row does."""
    sent_columns = pipeline.table.sent
    item = "transform(split(nullif(_sluice_item, ''), '[.]'), n -> CAST(n AS INT))"
    item = item if "_sluice_item" in columns else "CAST(NULL AS array<int>)"
    match pipeline.table.rule:
        case AllRows():
            yield from (identifier(column.name) for column in sent_columns)
        case Keyed() as keyed:
            yield from (_of_key(column, keyed) for column in sent_columns)
            yield f"{keyed.deletes or 'false'} AS {DELETE}"
            yield f"{item} AS {NTH}"
            if keyed.truncates:
                yield TRUNCATES
        case Totals() as totals:
            yield from (identifier(column.name) for column in sent_columns)
            if totals.order:
                fields_sql = [f"'n{index}', {identifier(name)}" for index, name in enumerate(totals.order)]
                fields_sql += [f"'{NTH_ITEM}', {item}"] if totals.nth else []
                yield f"named_struct({', '.join(fields_sql)}) AS {ORDER}"
            if pipeline.has_old_rows:
                yield OLD


def _of_key(column: Column, keyed: Keyed) -> str:
    name = identifier(column.name)
    if keyed.stands_in and column.name == keyed.order[0]:
        # Kafka's time stands in for one that a message without a value does not have.
        return f"IF(_sluice_tombstone, CAST(_kafka_timestamp AS {column.type.sql}), {name}) AS {name}"
    if keyed.truncates and column.name in keyed.keys:
        return f"IF({TRUNCATES}, NULL, {name}) AS {name}"
    return name
