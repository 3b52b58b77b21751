"""A table is late: messages wait, and its last commit is older than `fresh_within`."""

from __future__ import annotations

from collections.abc import Sequence

from framework.base.amounts import span
from framework.base.errors import Problem, Where
from framework.documents.draft import Draft
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration

DOES = "messages wait, and the last commit is older than `fresh_within`"


def plan_condition(_written: None, where: Where, pipelines: Sequence[Pipeline], draft: Draft) -> Condition:
    if not draft.lacks_pipelines and not any(pipeline.fresh_within for pipeline in pipelines):
        message = "none of these tables can be late: their pipelines have no `fresh_within`"
        draft.problems.append(Problem(where, "no-fresh-within", message, "add `fresh_within: 15m` to a pipeline"))
    return Condition(type="late", says="late", judge=judge)


def judge(_condition: Condition, table: TableFacts) -> Verdict:
    if not table.late:
        return table.late
    age = "there is no commit" if table.commit_age is None else f"its last commit is {span(table.commit_age)} old"
    return f"late: messages wait, and {age}, `fresh_within` is {duration(table.pipeline.fresh_within or 0)}"
