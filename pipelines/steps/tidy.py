"""Tidies text: no blanks around it, and null where nothing is left. The example of a step of one's own: docs/language/own-steps.md."""

from __future__ import annotations

from framework.errors import Problem
from framework.plan.rows import Resolved, Rows
from framework.spec.options import WrittenStep
from framework.spec.scalars import ColumnName
from framework.sql.quote import identifier
from framework.types import STRING

Written = tuple[ColumnName, ...]


def resolve(step: WrittenStep, rows: Rows) -> Resolved:
    """Each column is set to an expression, which `rows` checks, types and makes safe; what is wrong gets a place and a hint."""
    assign = []
    for at, name in enumerate(step.value):
        column = rows.column(name, step.place(at))
        if column is not None and column.type != STRING:
            hint = "name columns of text only"
            rows.problems.append(Problem(step.place(at), "not-text", f"`{name}` is {column.type}, not text", hint))
        elif column is not None:
            tidied = rows.expression(f"nullif(trim({identifier(name)}), '')", step.place(at), as_written=False)
            assign.append((name, tidied.sql))
    return Resolved(rows.columns, tuple(assign), says=(f"tidies {', '.join(step.value)}",))
