"""Sets columns to expressions over the columns before the step; a column of that name is replaced."""

from __future__ import annotations

from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import ColumnName, Expression
from framework.plan import Column

EXAMPLE = """\
columns: {symbol: string, quantity: int, price: double}
steps:
  - derive: {symbol: upper(symbol), notional: price * quantity}
given:
  - {symbol: zvzzt, quantity: 10, price: 2.5}
expect:
  - {symbol: ZVZZT, quantity: 10, price: 2.5, notional: 25.0}
"""

Written = dict[ColumnName, Expression]


ADDS = "*"


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    expressions = {name: rows.expression(text, step.place(name)) for name, text in step.value.items()}
    columns: list[Column] = []
    for name, checked in expressions.items():
        other_names = [column.name for column in (*rows.columns, *columns)]
        columns.append(rows.new_column(name, checked.type, step.key_place(name), others=other_names))
    return Resolved(
        rows.with_columns(columns),
        assign=tuple((name, checked.sql) for name, checked in expressions.items()),
        faults=tuple(
            fault
            for name, checked in expressions.items()
            for fault in rows.faults("derive", f"{name}: {step.value[name]}", checked)
        ),
        says=tuple(f"{name} = {text}" for name, text in step.value.items()),
    )
