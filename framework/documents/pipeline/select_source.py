"""Whole selects over tables of other pipelines, which replace a pipeline's source and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from framework.base.errors import Problem
from framework.base.types import BOOLEAN, DATE, INTEGRALS, STRING, TIMES, Decimal, Type
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.rows import Rows, name_problems, selected_name_problems
from framework.language.options import StepDocument
from framework.plan import Column, SelectSource, Step, TableChanges
from framework.sql.faults import ExpressionError
from framework.sql.query import whole
from framework.sql.query.whole import GivenColumn, Whole


def plan_select(spec: WrittenPipeline, tables: Sequence[TableChanges], rows: Rows) -> SelectSource | None:
    """Returns the select of a pipeline that reads these tables; if it has none, reports problems and returns None."""
    if "steps" in spec.gaps or len(tables) != len(set(spec.from_.tables or ())):
        return None
    step = spec.steps[0] if len(spec.steps) == 1 else None
    if step is None or step.name != "sql" or not isinstance(step.value, str):
        message = "what `tables` become is one step, `sql`"
        hint = "write `steps: [{sql: select … from …}]`; a pipeline behind this one, `from: {table: …}`, can have other steps"
        rows.problems.append(Problem(spec.place("steps"), "needs-sql", message, hint))
        return None
    given_columns = {
        table.identifier: (*(GivenColumn(column.name, column.type) for column in table.columns),
                          *(GivenColumn(column.name, column.type, hidden=True) for column in table.kafka))
        for table in tables
    }  # fmt: skip
    try:
        select = whole.whole(step.value, given_columns)
    except ExpressionError as error:
        rows.refuse(error, step.value, step.place())
        return None
    for index, table in enumerate(tables):
        if table.identifier not in select.used:
            message = f"the select does not read `{table.identifier}`"
            rows.problems.append(
                Problem(spec.from_.place("tables", index), "unused-table", message, "remove it, or name it in FROM")
            )
    names = [field.name for field in select.fields]
    for name in names:
        rows.problems.extend(selected_name_problems(name, step.place()))
        rows.problems.extend(name_problems(name, step.place(), [other_name for other_name in names if other_name != name]))
    source = _source(select, step.value, {table.identifier: table for table in tables}, step)
    partitions = spec.into.partition_by if "into" not in spec.gaps else ()
    plain_columns = {column.name for column in source.columns if column.type in (BOOLEAN, STRING, DATE, *INTEGRALS)}
    shared_pairs = [
        pair
        for pair in source.apart
        if pair[0] in source.tables[0].partitions and pair[1] in partitions and pair[1] in plain_columns
    ]
    return replace(source, apart=tuple(shared_pairs[:1]), by_partition=True) if shared_pairs else source


def _source(select: Whole, text: str, tables: dict[str, TableChanges], step: StepDocument) -> SelectSource:
    types = {field.name: field.type for field in select.fields}
    return SelectSource(
        says=tuple(text.strip().splitlines()),
        sql=select.sql,
        names=tuple(whole.table(index) for index in range(len(select.used))),
        tables=tuple(tables[name] for name in select.used),
        columns=tuple(Column(field.name, field.type, "", where=step.place()) for field in select.fields),
        origins=tuple((field.name, tuple(sorted(field.origins))) for field in select.fields),
        apart=tuple((column, name) for column, name in select.apart.items() if _can_be_listed(types[name])),
    )


def _can_be_listed(type_: Type) -> bool:
    return isinstance(type_, Decimal) or type_ in (BOOLEAN, STRING, DATE, *INTEGRALS, *TIMES)


def settled(source: SelectSource, steps: Sequence[Step]) -> SelectSource:
    """Returns the select, which these steps follow. Bad rows are identified by the batch that computed them, so if the steps can make
    some, each batch computes all rows."""
    return replace(source, apart=()) if any(step.faults for step in steps) else source
