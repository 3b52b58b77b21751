"""Puts a struct's fields in its place: `location` with a field `building` gives the column `location_building`."""

from __future__ import annotations

from framework.errors import Problem
from framework.model import Column
from framework.plan.rows import Resolved, Rows
from framework.spec.options import WrittenStep
from framework.spec.scalars import ColumnName
from framework.sql.quote import column_path
from framework.types import VOID, Struct

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


def resolve(step: WrittenStep, rows: Rows) -> Resolved:
    others = {column.name for column in rows.columns if column.name not in step.value}
    made = {name: _fields(name, at, step, rows, others) for at, name in enumerate(step.value)}
    columns = tuple(new for column in rows.columns for new in made.get(column.name, (column,)))
    assign = tuple(
        (column.name, column_path(name, column.name.removeprefix(f"{name}_"))) for name in made for column in made[name]
    )
    says = tuple(f"{name} → {', '.join(column.name for column in made[name])}" for name in made)
    unclear = any(not made[name] for name in made)
    return Resolved(columns, assign=assign, says=says, more=unclear)


def _fields(name: str, at: int, step: WrittenStep, rows: Rows, others: set[str]) -> tuple[Column, ...]:
    where = step.place(at)
    found = rows.column(name, where)
    if found is None or found.type == VOID:
        return ()
    if not isinstance(found.type, Struct):
        hint = "only a struct has fields; a list is taken apart by `explode`"
        rows.problems.append(Problem(where, "not-a-struct", f"`{name}` is {found.type}, not a struct", hint))
        return (found,)
    made = tuple(rows.new_column(f"{name}_{field.name}", field.type, where, others=others) for field in found.type.fields)
    for column in made:
        if column.name in others:
            hint = f"rename or drop the other `{column.name}` before this step"
            rows.problems.append(Problem(where, "duplicate-column", f"there is already a column `{column.name}`", hint))
        others.add(column.name)
    return made
