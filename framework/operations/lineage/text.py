"""Where each column of a table comes from, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.operations.lineage.flow import LineageFlow
from framework.plan import Pipeline


def lines(flow: LineageFlow, pipeline: Pipeline) -> Iterator[str]:
    """A line for each column of the pipeline's table, and its sources by the names of topics and tables."""
    yield f"{pipeline.table.identifier}  (pipeline {pipeline.name}, {pipeline.where})"
    width = max(len(column.name) for column in pipeline.table.readable)
    for column, by_part in _origins(flow, pipeline):
        origins = "; ".join(f"{part}: {', '.join(names)}" for part, names in by_part.items())
        yield f"  {column:<{width}}  {origins or 'no column'}"


def document(flow: LineageFlow, pipeline: Pipeline) -> dict[str, Any]:
    """The sources of each column, for programs."""
    columns = {
        column: [
            {part.partition(" ")[0]: part.partition(" ")[2], "column": name} for part, names in by_part.items() for name in names
        ]
        for column, by_part in _origins(flow, pipeline)
    }
    return {"name": pipeline.name, "table": pipeline.table.identifier, "columns": columns}


def _origins(flow: LineageFlow, pipeline: Pipeline) -> Iterator[tuple[str, dict[str, list[str]]]]:
    for column in pipeline.table.readable:
        by_part: dict[str, list[str]] = {}
        for part, name in flow.origins((f"table {pipeline.table.identifier}", column.name)):
            by_part.setdefault(part, []).append(name)
        yield column.name, by_part
