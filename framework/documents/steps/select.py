"""Keeps these columns, in this order; `b.c` takes the field `c` of a struct, as the column `c`."""

from __future__ import annotations

from framework.base.errors import Problem
from framework.base.types import VOID
from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import FieldPath
from framework.plan import Column
from framework.sql.quote import identifier

EXAMPLE = """\
columns: {sensor: string, location: "struct<building string, floor int>", temperature: double}
steps:
  - select: [temperature, sensor, location.building]
given:
  - {sensor: S1, location: {building: A, floor: 3}, temperature: 21.5}
expect:
  - {temperature: 21.5, sensor: S1, building: A}
"""

Written = tuple[FieldPath, ...]


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    assign: dict[str, str] = {}
    columns: dict[str, Column] = {}
    for index, path in enumerate(step.value):
        where = step.place(index)
        expression = rows.expression(identifier(*path.split(".")), where, as_written=False)
        name = path.rpartition(".")[2]
        if name in columns:
            hint = f"`derive: {{other_name: {path}}}` before it gives one of them another name"
            rows.problems.append(Problem(where, "duplicate-column", f"there are two columns `{name}`", hint))
        input_column = None if "." in path else next((column for column in rows.columns if column.name == name), None)
        columns[name] = input_column or rows.new_column(name, expression.type, where, others=columns)
        if input_column is None:
            assign[name] = expression.sql
    unclear = rows.more or any(column.type == VOID for column in columns.values())  # the unknown column may be any
    return Resolved(tuple(columns.values()), more=unclear, assign=tuple(assign.items()), says=(", ".join(step.value),))
