"""A pipeline has been paused for long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.amounts import span
from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration


@dataclass(frozen=True)
class Options(OptionGroup):
    """A pipeline has been paused for so long."""

    known_by: ClassVar[str | None] = "paused_for"

    paused_for: Duration = option("For how long.", example="1d")


def plan_condition(written: Options, _where: Where, _pipelines: Sequence[Pipeline], _draft: Draft) -> Condition:
    return Condition(
        type="paused_for", says=f"paused for {duration(written.paused_for)}", options=written.paused_for, judge=judge
    )


def judge(condition: Condition, table: TableFacts) -> Verdict:
    if table.paused_for is None or table.paused_for < condition.options:
        return False
    return f"paused for {span(table.paused_for)}"
