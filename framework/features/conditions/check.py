"""Rows are not as an expectation of the spec says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration


@dataclass(frozen=True)
class Options(OptionGroup):
    """A batch had rows that are not as an expectation says."""

    known_by: ClassVar[str | None] = "check"

    check: str = option("The name of an expectation of the pipeline.", example="sane_quantity", aka=["expectation"])
    in_: Duration = option("In which time.", default=600, example="10m", at_most="7d", aka=["within", "window", "for"])


def plan_condition(written: Options, _where: Where, pipelines: Sequence[Pipeline], draft: Draft) -> Condition:
    names = [expectation.name for pipeline in pipelines for expectation in pipeline.of_batches]
    if not draft.lacks_pipelines and written.check not in names:
        message = f"none of these pipelines has an expectation `{written.check}` of batches"
        hint = did_you_mean(written.check, names, "give the expectation a `name`; with `else: quarantine` its rows are bad rows")
        draft.problems.append(Problem(written.place("check"), "unknown-expectation", message, hint))
    says = f"rows are not as `{written.check}` expects, in {duration(written.in_)}"
    return Condition(type="check", says=says, options=written.check, window=written.in_, judge=judge)


def judge(condition: Condition, table: TableFacts) -> Verdict:
    name = condition.options
    if any(trouble.code == "not-as-expected" and f"`{name}`" in trouble.message for trouble in table.trouble):
        return f"a run was stopped: rows are not as `{name}` expects"
    count = table.grown(f"unmet {name}", condition.window)
    return None if count is None else count > 0 and f"{count:,.0f} rows are not as `{name}` expects"
