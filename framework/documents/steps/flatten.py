"""Replaces a struct by its fields: `location` with a field `building` gives the column `location_building`."""

from __future__ import annotations

from framework.base.errors import Problem
from framework.base.types import VOID, Struct
from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import ColumnName
from framework.plan import Column
from framework.sql.quote import column_path

EXAMPLE = """\
columns: {sensor: string, location: "struct<building string, floor int>"}
steps:
  - flatten: [location]
given:
  - {sensor: S1, location: {building: A, floor: 3}}
  - {sensor: S2, location: null}
expect:
  - {sensor: S1, location_building: A, location_floor: 3}
  - {sensor: S2, location_building: null, location_floor: null}
"""

Written = tuple[ColumnName, ...]


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    other_names = {column.name for column in rows.columns if column.name not in step.value}
    fields = {name: _fields(name, index, step, rows, other_names) for index, name in enumerate(step.value)}
    columns = tuple(new_column for column in rows.columns for new_column in fields.get(column.name, (column,)))
    assign = tuple(
        (column.name, column_path(name, column.name.removeprefix(f"{name}_"))) for name in fields for column in fields[name]
    )
    says = tuple(f"{name} → {', '.join(column.name for column in fields[name])}" for name in fields)
    unclear = any(not fields[name] for name in fields)
    return Resolved(columns, assign=assign, says=says, more=unclear)


def _fields(name: str, index: int, step: StepDocument, rows: Rows, other_names: set[str]) -> tuple[Column, ...]:
    where = step.place(index)
    struct_column = rows.column(name, where)
    if struct_column is None or struct_column.type == VOID:
        return ()
    if not isinstance(struct_column.type, Struct):
        hint = "only a struct has fields; use `explode` for a list"
        rows.problems.append(Problem(where, "not-a-struct", f"`{name}` is {struct_column.type}, not a struct", hint))
        return (struct_column,)
    field_columns = tuple(
        rows.new_column(f"{name}_{field.name}", field.type, where, others=other_names) for field in struct_column.type.fields
    )
    for column in field_columns:
        if column.name in other_names:
            hint = f"rename or drop the other `{column.name}` before this step"
            rows.problems.append(Problem(where, "duplicate-column", f"there is already a column `{column.name}`", hint))
        other_names.add(column.name)
    return field_columns
