"""Appends that write files of columns: each message is read, decoded and written in one pass (`ColumnAppend.java`).

Cost: no row of Spark is made of what only passes, and none is written twice. Where the plan or the table does not allow it
(`framework/plan/by_column.py`), Iceberg's own writer takes the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framework.core.rows.counts import BatchCounts, UnmetExpectation, carried_rows, place
from framework.core.rules import forgotten, protocol
from framework.core.staging import StagingTarget
from framework.plan import Pipeline
from framework.plan.by_column import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OF_ICEBERG = "spark.sql.iceberg."  # settings of Iceberg's writer


def is_possible(target: StagingTarget) -> bool:
    """Whether the target's rows can be written by columns."""
    return (
        not target.replays
        and not refusal(target.pipeline)
        and forgotten.read(target.table.properties()) is None
        and not any(name.startswith(_OF_ICEBERG) for name, _ in target.context.plan.engine.conf)
        and not target.spark._jvm.sluice.ColumnAppend.refusal(target.table)
    )


def stage(target: StagingTarget, rows: DataFrame) -> BatchCounts | None:
    """Adds the good ones of judged rows to the attempt's branch, and returns the counts. Returns None if they do not have the table's
    columns."""
    by_column = target.spark._jvm.sluice.ColumnAppend
    if not by_column.fits(rows._jdf, target.table):
        return None
    carries = target.pipeline.bad_rows != "drop"
    outcome = by_column.append(rows._jdf, target.table, protocol.BRANCH + target.attempt, target.summary, carries)
    read, filtered, bad = outcome.read(), outcome.filtered(), outcome.bad()
    return BatchCounts(
        read=read, rows=read - filtered - bad, filtered=filtered, bad=bad, too_large=outcome.tooLarge(),
        unmet=tuple(_unmet(target.pipeline, outcome)),
        carried=carried_rows(target.spark, outcome.carried()) if bad and carries else None, unknown_schemas=frozenset(outcome.unknown()),
    )  # fmt: skip


def _unmet(pipeline: Pipeline, outcome: Any) -> Iterator[UnmetExpectation]:
    for index, expectation in enumerate(pipeline.expectations):
        if rows := outcome.unmet(index):
            places = list(outcome.places(index))
            first, last = (place(places[:2]), place(places[2:])) if places else (None, None)
            yield UnmetExpectation(name=expectation.name, rows=rows, first_place=first, last_place=last)
