"""Renames columns; their order stays. Two columns can swap their names."""

from __future__ import annotations

from dataclasses import replace

from framework.base.errors import Problem
from framework.base.types import VOID
from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import ColumnName
from framework.plan import Column
from framework.sql.quote import column_path

EXAMPLE = """\
columns: {userid: string, regionid: string}
steps:
  - rename: {userid: user_id, regionid: region}
given:
  - {userid: User_1, regionid: Region_5}
expect:
  - {user_id: User_1, region: Region_5}
"""

Written = dict[ColumnName, ColumnName]


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    names = {column.name for column in rows.columns}
    kept_names = names - set(step.value)
    new_names: set[str] = set()
    unknown: list[Column] = []  # later steps can still name them
    for old_name, new_name in step.value.items():
        if old_name not in names and new_name in kept_names:
            hint = f"the old name comes first: `{new_name}: {old_name}`"
            rows.problems.append(Problem(step.key_place(old_name), "unknown-column", f"there is no column `{old_name}`", hint))
            unknown.append(Column(old_name, VOID, "", where=step.key_place(old_name)))
            continue
        old_column = rows.column(old_name, step.key_place(old_name))
        if old_column is not None:
            rows.new_column(new_name, old_column.type, step.place(old_name), others=kept_names | new_names)
        if old_name not in names:
            unknown.append(Column(new_name, VOID, "", where=step.place(old_name)))
        if new_name in kept_names | new_names and not rows.more:
            hint = "choose another name, or drop or rename the other column"
            rows.problems.append(
                Problem(step.place(old_name), "duplicate-column", f"there is already a column `{new_name}`", hint)
            )
        new_names.add(new_name)
    columns = tuple(
        replace(column, name=step.value[column.name], where=step.key_place(column.name)) if column.name in step.value else column
        for column in rows.columns
    )
    assign = tuple((new_name, column_path(old_name)) for old_name, new_name in step.value.items())
    return Resolved(
        (*columns, *unknown), assign=assign, says=tuple(f"{old_name} → {new_name}" for old_name, new_name in step.value.items())
    )
