"""A table gets many rows, or few; all of them, or those for which a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from framework.base.errors import Problem, Where
from framework.documents.draft import Draft
from framework.features.conditions._comparisons import Comparison, holds, read
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration, Scalar
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration

Filter = Annotated[
    str,
    Scalar(noun="a condition", code="bad-query", example="anomaly_flag = 'LARGE_TRADE'", pattern=r"\S",
           rule="a condition on a row, in DuckDB's SQL"),
]  # fmt: skip


@dataclass(frozen=True)
class Options(OptionGroup):
    """A table gets so many rows in a time, or so few. With `where` they are counted in the table, by their event time."""

    known_by: ClassVar[str | None] = "rows"

    rows: Comparison = option("How many.", example='"< 1"')
    in_: Duration = option("In which time.", default=600, example="10m", at_most="7d", aka=["within", "window", "for"])
    where: Filter | None = option(
        "Only rows for which this holds, in DuckDB's SQL.",
        default=None,
        example="\"anomaly_flag = 'LARGE_TRADE'\"",
        aka=["filter"],
    )


def plan_condition(written: Options, _where: Where, pipelines: Sequence[Pipeline], draft: Draft) -> Condition:
    if written.where is not None:
        for pipeline in pipelines:
            _check(written.where, pipeline, written, draft)
            if pipeline.event_time is None:
                message = f"{pipeline.table.identifier} keeps no time of its rows, by which the last ones are found"
                hint = "remove `where`, or keep the column `_kafka_timestamp` or the topic's `event_time` in the table"
                draft.problems.append(Problem(written.place("where"), "no-event-time", message, hint))
    of_those = f" where {written.where}" if written.where else ""
    says = f"{written.rows} rows{of_those} in {duration(written.in_)}"
    options = (read(written.rows), written.where)
    return Condition(type="rows", says=says, options=options, window=written.in_, judge=judge)


def _check(filter_: str, pipeline: Pipeline, written: Options, draft: Draft) -> None:
    """Reports a condition that is none on the columns of the pipeline's table."""
    from framework.core.query import bound

    for text in (filter_, f"({filter_})"):  # neither a closing bracket nor a further clause fits both
        query = f"select count(*) from {bound.INPUT} where {text}"
        if problem := bound.problem(query, pipeline.table, "an alert", written.place("where")):
            hint = "write a condition, such as `quantity > 10`, on the columns of the table"
            draft.problems.append(replace(problem, hint=hint))
            return


def judge(condition: Condition, table: TableFacts) -> Verdict:
    comparison, filter_ = condition.options
    count = table.counted(filter_, condition.window) if filter_ else table.grown("rows", condition.window)
    if count is None:
        return None
    of_those = f" where {filter_}" if filter_ else ""
    return holds(comparison, count) and f"{count:,.0f} rows{of_those} in {duration(int(condition.window))}"
