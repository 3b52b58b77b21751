"""Which columns of a pipeline's source each column of its table is made of, through every step.

Limit: of columns, not of a struct's fields. A condition (a filter, a fault) decides whether there is a row, and makes no column.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.model import EVENT_TIME, VERSION, Pipeline, Step, columns_read


def lineage(pipeline: Pipeline) -> Mapping[str, frozenset[str]]:
    """By the name of a table's column."""
    source = pipeline.source.columns if pipeline.source else pipeline.topic.columns
    found = {column.name: frozenset([column.name]) for column in source}
    kafka = {column.name: frozenset([column.name]) for column in pipeline.kafka_columns}
    event_time = None if pipeline.source else pipeline.topic.event_time
    moment = {EVENT_TIME: frozenset([event_time])} if event_time else {}
    for step in pipeline.steps:
        found = _behind(step, found, {**found, **kafka, **moment})
    found = {**kafka, **moment, **found}
    if pipeline.table.keyed and pipeline.table.keyed.versions:
        found |= dict.fromkeys(VERSION, found[pipeline.table.keyed.order[0]])
    return {column.name: found[column.name] for column in pipeline.table.columns}


def _behind(step: Step, found: Mapping[str, frozenset[str]], known: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    assign = dict(step.assign)
    if step.each:
        assign[step.each.into] = step.each.list
    return {
        column.name: frozenset(origin for name in columns_read(assign[column.name], known) for origin in known[name])
        if column.name in assign
        else found.get(column.name, frozenset())
        for column in step.columns
    }
