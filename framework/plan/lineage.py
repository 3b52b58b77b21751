"""The lineage of a table's columns: the source columns that each is computed from, through every step. A column of another table, in
which a step looks rows up, or which a whole select reads, has that table's name in front.

Limit: the lineage is by column, not by field of a struct. Conditions (of a filter or a fault) do not count.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.plan import EVENT_TIME, KAFKA_COLUMNS, VERSION, AllRows, Keyed, Pipeline, Step, TableChanges, Topic, columns_read
from framework.plan.totals import MEASURES, TIME, WINDOW_END, WINDOW_START, Totals


def lineage(pipeline: Pipeline) -> Mapping[str, frozenset[str]]:
    """The source columns by the name of each column of the table."""
    if pipeline.select:
        origins = {name: frozenset(columns) for name, columns in pipeline.select.origins}
    else:
        origins = {column.name: frozenset([column.name]) for column in pipeline.read_columns}
    kafka_origins = {column.name: frozenset([column.name]) for column in pipeline.kafka_columns}
    event_time_origin = {EVENT_TIME: frozenset([pipeline.topic.event_time or KAFKA_COLUMNS[-1].name])} if pipeline.topics else {}
    for step in pipeline.steps:
        origins = _after(step, origins, {**origins, **kafka_origins, **event_time_origin})
    origins = {**kafka_origins, **event_time_origin, **origins}
    match pipeline.table.rule:
        case Keyed(versions=True, order=order):
            origins |= dict.fromkeys(VERSION, origins[order[0]])
        case Totals() as totals:
            origins |= _of_totals(totals, origins)
        case AllRows() | Keyed():
            pass
    return {column.name: origins[column.name] for column in pipeline.table.columns}


def by_source(pipeline: Pipeline) -> dict[str, list[tuple[Topic | TableChanges, str]]]:
    """The source columns of each column that is for readers, each with its topic or its table."""
    select_tables = pipeline.select.tables if pipeline.select else ()
    table_columns: dict[str, tuple[Topic | TableChanges, str]] = {
        f"{table.identifier}.{column.name}": (table, column.name)
        for table in (*select_tables, *(join.source for join in pipeline.joins))
        for column in (*table.columns, *table.kafka)
    }
    sources = pipeline.topics or pipeline.read_tables
    origins = lineage(pipeline)
    return {
        column.name: [
            place
            for origin in sorted(origins[column.name])
            for place in ([table_columns[origin]] if origin in table_columns else [(source, origin) for source in sources])
            if _has(*place)
        ]
        for column in pipeline.table.readable
    }


def _has(source: Topic | TableChanges, name: str) -> bool:
    """Whether the source has the column. A table lacks the columns that name the commit of a row."""
    return isinstance(source, Topic) or any(column.name == name for column in (*source.columns, *source.kafka))


def _of_totals(totals: Totals, origins: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    measures = {measure.name: origins.get(measure.row_column, frozenset()) for measure in totals.measures}
    window = dict.fromkeys((WINDOW_START, WINDOW_END), origins.get(TIME, frozenset()))
    return {**measures, **window, MEASURES: frozenset().union(*measures.values())}


def _after(
    step: Step, origins: Mapping[str, frozenset[str]], readable: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    assign = dict(step.assign)
    if step.each:
        assign[step.each.into] = step.each.list
    joined_columns = {name: frozenset([f"{step.join.source.identifier}.{name}"]) for name in step.join.take} if step.join else {}
    origins = {**origins, **joined_columns}
    return {
        column.name: frozenset(origin for name in columns_read(assign[column.name], readable) for origin in readable[name])
        if column.name in assign
        else origins.get(column.name, frozenset())
        for column in step.columns
    }
