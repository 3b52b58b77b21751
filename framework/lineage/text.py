"""Where each column of a table comes from, as text."""

from __future__ import annotations

from collections.abc import Iterator

from framework.lineage.flow import Flow
from framework.model import Pipeline


def lines(flow: Flow, pipeline: Pipeline) -> Iterator[str]:
    """A line for each column of the pipeline's table, and its sources by the names of topics and tables."""
    key = f"table {pipeline.table.identifier}"
    yield f"{pipeline.table.identifier}  (pipeline {pipeline.name}, {pipeline.where})"
    width = max(len(column.name) for column in pipeline.table.shown)
    for column in pipeline.table.shown:
        by_part: dict[str, list[str]] = {}
        for part, name in flow.origins((key, column.name)):
            by_part.setdefault(part, []).append(name)
        origins = "; ".join(f"{part}: {', '.join(names)}" for part, names in by_part.items())
        yield f"  {column.name:<{width}}  {origins or 'no column'}"
