"""Keeps the first row of each value of some columns, over all batches."""

from __future__ import annotations

from typing import Any

from framework.documents.rows import Resolved, Rows
from framework.language.options import StepDocument
from framework.language.scalars import ColumnName
from framework.plan import Remember, State
from framework.sql.quote import identifier

EXAMPLE = """\
columns: {order_id: string, amount: int}
steps:
  - first_of: [order_id]
given:
  - {order_id: A1, amount: 1}
  - {order_id: A1, amount: 2}
  - {order_id: A2, amount: 3}
expect:
  - {order_id: A1, amount: 1}
  - {order_id: A2, amount: 3}
"""

ADDS = ""
Written = list[ColumnName]


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    names = tuple(name for index, name in enumerate(step.value) if rows.column(name, step.place(index)))
    says = f"the first row of each {', '.join(names)}"

    def admit(new: Any, earlier: Any) -> Any:
        from pyspark.sql import Window, functions

        window = Window.partitionBy(*names).orderBy("_kafka_timestamp", "_kafka_partition", "_kafka_offset")
        first_rows = (
            new.withColumn("_sluice_rank", functions.row_number().over(window)).where("_sluice_rank = 1").drop("_sluice_rank")
        )
        remembered_rows = earlier.rows()
        if remembered_rows is None:
            return first_rows
        condition = " AND ".join(f"new.{identifier(name)} <=> old.{identifier(name)}" for name in names)
        return first_rows.alias("new").join(remembered_rows.alias("old"), functions.expr(condition), "left_anti")

    return Resolved(rows.columns, says=(says,), memory=Remember(columns=names, admit=admit, state=State("firstof", names, says)))
