"""Tidies text: no blanks around it, and null where nothing is left. The example of a step of one's own: docs/language/own-steps.md."""

from __future__ import annotations

from sluice.steps import STRING, ColumnName, Problem, Resolved, Rows, StepDocument, identifier

Written = tuple[ColumnName, ...]


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    """Each column is set to an expression, which `rows` checks, types and makes safe; what is wrong gets a place and a hint."""
    assign = []
    for index, name in enumerate(step.value):
        column = rows.column(name, step.place(index))
        if column is not None and column.type != STRING:
            hint = "name columns of text only"
            rows.problems.append(Problem(step.place(index), "not-text", f"`{name}` is {column.type}, not text", hint))
        elif column is not None:
            tidied = rows.expression(f"nullif(trim({identifier(name)}), '')", step.place(index), as_written=False)
            assign.append((name, tidied.sql))
    return Resolved(rows.columns, tuple(assign), says=(f"tidies {', '.join(step.value)}",))
