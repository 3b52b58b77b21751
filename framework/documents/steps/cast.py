"""Casts columns to other types. A value that cannot be cast makes a bad row, never a silent null."""

from __future__ import annotations

import re
from dataclasses import replace

from framework.base import type_text, types
from framework.base.errors import Problem
from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import ColumnName, ColumnType
from framework.plan import Column, Fault
from framework.sql.quote import identifier

EXAMPLE = """\
columns: {order_id: string, amount: string}
steps:
  - cast: {amount: "decimal(18,2)"}
given:
  - {order_id: A1, amount: "12.50"}
  - {order_id: A2, amount: twelve}
expect:
  - {order_id: A1, amount: 12.50}
expect_bad:
  - {stage: cast, error: step_failed, message: "`amount as decimal(18,2)` cannot be computed for this row:
      'twelve' is not a decimal(18,2) in cast(amount AS decimal(18,2)) (amount = 'twelve')"}
"""

Written = dict[ColumnName, ColumnType]


def _by_derive(problem: Problem, name: str) -> Problem:
    """Returns the problem of an impossible cast with a hint to compute the value by a step `derive`."""
    sql = re.search(r"`([^`]+)`", problem.hint)
    return replace(problem, hint=f'write `derive: {{{name}: "{sql[1]}"}}` in place of this') if sql else problem


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    assign: list[tuple[str, str]] = []
    faults: list[Fault] = []
    columns: list[Column] = []
    for name, text in step.value.items():
        column = rows.column(name, step.key_place(name))
        try:
            type_ = type_text.parse(text)
        except type_text.TypeTextError as error:
            rows.problems.append(Problem(step.place(name), "bad-type", error.message, error.hint))
            columns += [replace(column, type=types.VOID)] if column else []
            continue
        if column is None:
            continue
        problems_before = len(rows.problems)
        cast_value = rows.expression(f"cast({identifier(name)} as {type_.sql})", step.place(name), as_written=False)
        rows.problems[problems_before:] = [_by_derive(problem, name) for problem in rows.problems[problems_before:]]
        columns.append(Column(name, type_, column.doc, where=step.key_place(name)))
        assign.append((name, cast_value.sql))
        faults += rows.faults("cast", f"{name} as {type_}", cast_value)
    return Resolved(
        rows.with_columns(columns), tuple(assign), faults=tuple(faults),
        says=tuple(f"{column.name} as {column.type}" for column in columns),
    )  # fmt: skip
