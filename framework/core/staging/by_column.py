"""Appends that write files of columns (`ColumnAppend.java`).

Cost: where the plan allows it (`framework/plan/by_column.py`), each message is read, decoded and written in one pass, and no row of Spark
is made of what only passes; else rows of Spark are added. Where plan or table do not allow either, Iceberg's own writer takes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from framework.core.rows.counts import BatchCounts, UnmetExpectation, carried_rows, codes, place
from framework.core.rules import forgotten, protocol
from framework.core.staging import StagingTarget
from framework.plan import Pipeline
from framework.plan.by_column import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OF_ICEBERG = "spark.sql.iceberg."  # settings of Iceberg's writer


def is_possible(target: StagingTarget) -> bool:
    """Whether files of columns can be written for the target."""
    return (
        not refusal(target.pipeline)
        and not any(name.startswith(_OF_ICEBERG) for name, _ in target.context.plan.engine.conf)
        and not target.spark._jvm.sluice.ColumnAppend.refusal(target.table)
    )


def judges_rows(target: StagingTarget) -> bool:
    """Whether each row can say itself what becomes of it, as far as it is not compared with others."""
    pipeline = target.pipeline
    return bool(pipeline.topics) and not (
        pipeline.explodes or target.replays or forgotten.read(target.table.properties()) is not None
    )


def stage(target: StagingTarget, rows: DataFrame) -> BatchCounts | None:
    """Adds the good ones of judged rows to the attempt's branch, and returns the counts. Returns None if they do not have the table's
    columns."""
    outcome = _appended(target, rows, target.pipeline.bad_rows != "drop")
    return None if outcome is None else counted(target, outcome)


def counted(target: StagingTarget, outcome: Any) -> BatchCounts:
    """The counts of judged rows (`AppendTally.java`), of which the good ones land."""
    read, filtered, bad = outcome.read(), outcome.filtered(), outcome.bad()
    bad_list = outcome.carried() if bad and target.pipeline.bad_rows != "drop" else None
    return BatchCounts(
        read=read, rows=read - filtered - bad, filtered=filtered, bad=bad, too_large=outcome.tooLarge(),
        unmet=tuple(_unmet(target.pipeline, outcome)),
        carried=None if bad_list is None else carried_rows(target.spark, bad_list),
        codes=codes(target.spark, target.pipeline, bad, bad_list), unknown_schemas=frozenset(outcome.unknown()),
    )  # fmt: skip


def add(target: StagingTarget, rows: DataFrame) -> int | None:
    """Adds rows to the attempt's branch, and returns how many. Returns None if files of columns cannot be written of them."""
    if not is_possible(target):
        return None
    outcome = _appended(target, rows, carries=False)
    return None if outcome is None else outcome.read() - outcome.filtered()


def fits(target: StagingTarget, rows: DataFrame, besides: Iterable[str] = ()) -> bool:
    """Whether rows have the table's columns, `besides` some that will not be written."""
    return bool(target.spark._jvm.sluice.ColumnAppend.fits(rows._jdf, target.table, list(besides)))


def _appended(target: StagingTarget, rows: DataFrame, carries: bool) -> Any:
    """Returns what `ColumnAppend.java` says of the rows; None if they do not have the table's columns."""
    if not fits(target, rows):
        return None
    return target.spark._jvm.sluice.ColumnAppend.append(
        rows._jdf, target.table, protocol.BRANCH + target.attempt, target.summary, carries
    )


def _unmet(pipeline: Pipeline, outcome: Any) -> Iterator[UnmetExpectation]:
    for index, expectation in enumerate(pipeline.expectations):
        if rows := outcome.unmet(index):
            places = list(outcome.places(index))
            first, last = (place(places[:2]), place(places[2:])) if places else (None, None)
            yield UnmetExpectation(name=expectation.name, rows=rows, first_place=first, last_place=last)
