"""The lineage of a table's columns: the source columns that each is computed from, through every step. A column of another table, in
which a step looks rows up, or which a whole select reads, has that table's name in front.

Limit: the lineage is by column, not by field of a struct. Conditions (of a filter or a fault) do not count.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.plan import EVENT_TIME, KAFKA_COLUMNS, VERSION, Pipeline, SelectSource, Step, TableSource, Topic, columns_read
from framework.plan.totals import MEASURES, TIME, WINDOW_END, WINDOW_START, Accumulated


def lineage(pipeline: Pipeline) -> Mapping[str, frozenset[str]]:
    """The source columns by the name of each column of the table."""
    if isinstance(pipeline.source, SelectSource):
        origins = {name: frozenset(each) for name, each in pipeline.source.origins}
    else:
        source = pipeline.source.columns if pipeline.source else pipeline.topic.columns
        origins = {column.name: frozenset([column.name]) for column in source}
    kafka = {column.name: frozenset([column.name]) for column in pipeline.kafka_columns}
    moment = {} if pipeline.source else {EVENT_TIME: frozenset([pipeline.topic.event_time or KAFKA_COLUMNS[-1].name])}
    for step in pipeline.steps:
        origins = _after(step, origins, {**origins, **kafka, **moment})
    origins = {**kafka, **moment, **origins}
    if pipeline.table.keyed and pipeline.table.keyed.versions:
        origins |= dict.fromkeys(VERSION, origins[pipeline.table.keyed.order[0]])
    if pipeline.table.accumulated:
        origins |= _of_totals(pipeline.table.accumulated, origins)
    return {column.name: origins[column.name] for column in pipeline.table.columns}


def by_source(pipeline: Pipeline) -> dict[str, list[tuple[Topic | TableSource, str]]]:
    """The same for the columns that are for readers, each source column with its topic or its table."""
    selected = pipeline.source.tables if isinstance(pipeline.source, SelectSource) else ()
    named: dict[str, tuple[Topic | TableSource, str]] = {
        f"{table.identifier}.{column.name}": (table, column.name)
        for table in (*selected, *(join.source for join in pipeline.joins))
        for column in (*table.columns, *table.kafka)
    }
    sources = [pipeline.source] if isinstance(pipeline.source, TableSource) else pipeline.topics
    origins = lineage(pipeline)
    return {
        column.name: [
            place
            for origin in sorted(origins[column.name])
            for place in ([named[origin]] if origin in named else [(source, origin) for source in sources])
            if _has(*place)
        ]
        for column in pipeline.table.readable
    }


def _has(source: Topic | TableSource, name: str) -> bool:
    """A table that is read has no columns that say which of its commits a row comes from."""
    return isinstance(source, Topic) or any(column.name == name for column in (*source.columns, *source.kafka))


def _of_totals(totals: Accumulated, origins: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    measures = {each.name: origins.get(each.row_column, frozenset()) for each in totals.measures}
    window = dict.fromkeys((WINDOW_START, WINDOW_END), origins.get(TIME, frozenset()))
    return {**measures, **window, MEASURES: frozenset().union(*measures.values())}


def _after(
    step: Step, origins: Mapping[str, frozenset[str]], readable: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    assign = dict(step.assign)
    if step.each:
        assign[step.each.into] = step.each.list
    looked_up = {name: frozenset([f"{step.join.source.identifier}.{name}"]) for name in step.join.take} if step.join else {}
    origins = {**origins, **looked_up}
    return {
        column.name: frozenset(origin for name in columns_read(assign[column.name], readable) for origin in readable[name])
        if column.name in assign
        else origins.get(column.name, frozenset())
        for column in step.columns
    }
