"""Keeps the rows for which a condition is true; null is not true."""

from __future__ import annotations

from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import Expression

EXAMPLE = """\
columns: {symbol: string, quantity: int}
steps:
  - filter: quantity > 0
given:
  - {symbol: ZVZZT, quantity: 10}
  - {symbol: ZJZZT, quantity: 0}
  - {symbol: ZWZZT, quantity: null}
expect:
  - {symbol: ZVZZT, quantity: 10}
"""

Written = Expression


ADDS = ""


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    condition = rows.condition(step.value, step.place())
    return Resolved(rows.columns, keep=condition.sql, faults=rows.faults("filter", step.value, condition), says=(step.value,))
