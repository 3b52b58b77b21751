"""A table gets many bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.features.conditions._comparisons import Comparison, holds, read
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration


@dataclass(frozen=True)
class Options(OptionGroup):
    """A table gets so many bad rows in a time."""

    known_by: ClassVar[str | None] = "bad_rows"

    bad_rows: Comparison = option("How many.", example='"> 10"')
    in_: Duration = option("In which time.", default=600, example="10m", at_most="7d", aka=["within", "window", "for"])


def plan_condition(written: Options, _where: Where, _pipelines: Sequence[Pipeline], _draft: Draft) -> Condition:
    says = f"{written.bad_rows} bad rows in {duration(written.in_)}"
    return Condition(type="bad_rows", says=says, options=read(written.bad_rows), window=written.in_, judge=judge)


def judge(condition: Condition, table: TableFacts) -> Verdict:
    count = table.grown("bad", condition.window)
    if count is None:
        return None
    return holds(condition.options, count) and f"{count:,.0f} bad rows in {duration(int(condition.window))}"
