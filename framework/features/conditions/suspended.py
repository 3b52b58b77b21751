"""A pipeline is suspended."""

from __future__ import annotations

from collections.abc import Sequence

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict

DOES = "a run was refused, and a person must decide"


def plan_condition(_written: None, _where: Where, _pipelines: Sequence[Pipeline], _draft: Draft) -> Condition:
    return Condition(type="suspended", says="suspended", judge=judge)


def judge(_condition: Condition, table: TableFacts) -> Verdict:
    if table.state != "suspended":
        return False
    return "suspended: " + "; ".join(trouble.words for trouble in table.trouble)
