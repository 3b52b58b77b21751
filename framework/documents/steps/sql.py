"""Runs one select over the rows so far, for what no other step can do: `select … from input where …`, row by row."""

from __future__ import annotations

from dataclasses import replace

from framework.base.types import VOID
from framework.documents.rows import Resolved, Rows, selected_name_problems
from framework.language.options import StepDocument
from framework.language.scalars import Expression
from framework.plan import Column, ColumnSql
from framework.sql.expressions import ExpressionError
from framework.sql.quote import column_path
from framework.sql.select import SelectedColumn, select

EXAMPLE = """\
columns: {symbol: string, quantity: int, price: double}
steps:
  - sql: |
      select symbol, price * quantity as notional
      from input
      where quantity > 0
given:
  - {symbol: ZVZZT, quantity: 10, price: 2.5}
  - {symbol: ZJZZT, quantity: 0, price: 4.0}
expect:
  - {symbol: ZVZZT, notional: 25.0}
"""

Written = Expression


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    input_columns = {column.name: column for column in rows.columns}
    try:
        statement = select(step.value, rows.types, star=input_columns)
    except ExpressionError as error:
        rows.refuse(error, step.value, step.place())
        return Resolved(tuple(replace(column, type=VOID) for column in rows.columns), more=True)
    names = [item.name for item in statement.items]
    columns = tuple(_column(item, input_columns, names, rows, step) for item in statement.items)
    condition = rows.attempted(statement.where) if statement.where else None
    values = {item: rows.attempted(item.value) for item in statement.items}
    is_kept = (
        ColumnSql(f"{condition.sql} IS TRUE", condition.sql.reads) if condition else None
    )  # nothing is computed for rows that WHERE leaves out
    return Resolved(
        columns,
        assign=tuple((item.name, value.sql) for item, value in values.items() if not _as_it_is(item, input_columns)),
        keep=condition.sql if condition else None,
        faults=(
            *(rows.faults("sql", statement.where_text, condition) if condition else ()),
            *(rows.fault("sql", item.text, value.error, only=is_kept) for item, value in values.items() if value.error),
        ),
        says=tuple(step.value.strip().splitlines()),
    )


def _as_it_is(item: SelectedColumn, input_columns: dict[str, Column]) -> bool:
    return item.name in input_columns and item.value.sql == column_path(item.name)


def _column(item: SelectedColumn, input_columns: dict[str, Column], names: list[str], rows: Rows, step: StepDocument) -> Column:
    if _as_it_is(item, input_columns):
        return input_columns[item.name]
    rows.problems.extend(selected_name_problems(item.name, step.place()))
    return rows.new_column(item.name, item.value.type, step.place(), others=names)
