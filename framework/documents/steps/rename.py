"""Renames columns; their order stays. Two columns can swap their names."""

from __future__ import annotations

from dataclasses import replace

from framework.base.errors import Problem
from framework.base.types import VOID
from framework.documents.rows import Resolved, Rows
from framework.language.options import WrittenStep
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


def resolve(step: WrittenStep, rows: Rows) -> Resolved:
    names = {column.name for column in rows.columns}
    kept = names - set(step.value)
    taken: set[str] = set()
    unknown: list[Column] = []  # later steps can still name them
    for old, new in step.value.items():
        if old not in names and new in kept:
            hint = f"the old name comes first: `{new}: {old}`"
            rows.problems.append(Problem(step.key_place(old), "unknown-column", f"there is no column `{old}`", hint))
            unknown.append(Column(old, VOID, "", where=step.key_place(old)))
            continue
        old_column = rows.column(old, step.key_place(old))
        if old_column is not None:
            rows.new_column(new, old_column.type, step.place(old), others=kept | taken)
        if old not in names:
            unknown.append(Column(new, VOID, "", where=step.place(old)))
        if new in kept | taken and not rows.more:
            hint = "choose another name, or drop or rename the other column"
            rows.problems.append(Problem(step.place(old), "duplicate-column", f"there is already a column `{new}`", hint))
        taken.add(new)
    columns = tuple(
        replace(column, name=step.value[column.name], where=step.key_place(column.name)) if column.name in step.value else column
        for column in rows.columns
    )
    assign = tuple((new, column_path(old)) for old, new in step.value.items())
    return Resolved((*columns, *unknown), assign=assign, says=tuple(f"{old} → {new}" for old, new in step.value.items()))
