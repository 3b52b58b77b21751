"""A pipeline is failing."""

from __future__ import annotations

from collections.abc import Sequence

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict

_PATIENCE = 60.0  # seconds in which Kafka or a catalog may not answer
DOES = "its last run failed, or Kafka or the catalog does not answer"


def plan_condition(_written: None, _where: Where, _pipelines: Sequence[Pipeline], _draft: Draft) -> Condition:
    return Condition(type="failing", says="failing", judge=judge)


def judge(_condition: Condition, table: TableFacts) -> Verdict:
    fails = table.state == "failing"
    lasted = table.lasted("failing", fails)
    if not fails or (table.unanswered and lasted < _PATIENCE):
        return False
    return "failing: " + "; ".join(trouble.words for trouble in table.trouble)
