"""Makes one row from each item of a list: the item replaces the list, as the column `into`. An empty or missing list makes no row.

After this step each row is checked on its own: if one is bad, the other rows of its message are still loaded. The bad rows' column
`item` holds its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.base.errors import Problem
from framework.base.types import VOID, Array
from framework.documents.rows import Resolved, Rows
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import ColumnName
from framework.plan import Explode
from framework.sql.quote import column_path

EXAMPLE = """\
columns: {order_id: string, items: array<string>}
steps:
  - explode: {column: items, into: item}
given:
  - {order_id: A1, items: [pen, ink]}
  - {order_id: A2, items: []}
expect:
  - {order_id: A1, item: pen}
  - {order_id: A1, item: ink}
"""


@dataclass(frozen=True)
class Written(OptionGroup):
    """The list, and the name of its items."""

    column: ColumnName = option("The list.", example="items", aka=["field", "array"])
    into: ColumnName | None = option("The column of an item; default: the list's name.", default=None, example="item", aka=["as"])


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    written: Written = step.value
    into = written.into or written.column
    list_column = rows.column(written.column, written.place("column"))
    type_ = list_column.type if list_column else VOID
    if type_ != VOID and not isinstance(type_, Array):
        hint = "only a list has items; use `flatten` for a struct"
        message = f"`{written.column}` is {type_}, not a list"
        rows.problems.append(Problem(written.place("column"), "not-a-list", message, hint))
    other_names = [column.name for column in rows.columns if column.name != written.column]
    if into in other_names:
        hint = "choose another name, or drop that column before this step"
        rows.problems.append(Problem(written.place("into"), "duplicate-column", f"there is already a column `{into}`", hint))
    item = rows.new_column(
        into, type_.element if isinstance(type_, Array) else VOID, written.place("into"), others=[*other_names, written.column]
    )
    columns = tuple(item if column.name == written.column else column for column in rows.columns)
    if list_column is None:  # later steps are still checked
        columns = (*columns, item)
    return Resolved(
        columns, effect=Explode(column_path(written.column), into), says=(f"a row for each {into} of {written.column}",)
    )
