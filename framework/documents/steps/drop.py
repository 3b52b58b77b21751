"""Removes these columns."""

from __future__ import annotations

from framework.base.errors import Problem
from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import ColumnName

EXAMPLE = """\
columns: {order_id: string, amount: double, note: string}
steps:
  - drop: [note]
given:
  - {order_id: A1, amount: 12.5, note: by phone}
expect:
  - {order_id: A1, amount: 12.5}
"""

Written = tuple[ColumnName, ...]


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    for index, name in enumerate(step.value):
        rows.column(name, step.place(index))
    columns = tuple(column for column in rows.columns if column.name not in step.value)
    if not columns and not rows.more:
        hint = "leave at least one, or write Kafka's own columns alone to another table"
        rows.problems.append(Problem(step.place(), "no-columns", "no column is left", hint))
    return Resolved(columns, says=(", ".join(step.value),))
