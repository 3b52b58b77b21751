"""The snapshots of the tables that a batch looks rows up in: the newest ones when it begins."""

from __future__ import annotations

from dataclasses import replace

from framework.engine.iceberg import metadata
from framework.errors import SourceMissing
from framework.model import Join, Pipeline


def pinned(pipeline: Pipeline) -> Pipeline:
    """The pipeline, whose steps look rows up in the snapshots of now."""
    if not pipeline.joins:
        return pipeline
    steps = tuple(replace(step, join=_now(step.join, pipeline)) if step.join else step for step in pipeline.steps)
    return replace(pipeline, steps=steps)


def _now(join: Join, pipeline: Pipeline) -> Join:
    source = join.source
    table = metadata.read(source.catalog, source.identifier)
    main = table.main if table else None
    if main is None:
        raise SourceMissing(
            "source-missing",
            f"the table {source.identifier}, in which {pipeline.name} looks rows up, does not exist yet",
            f"run `{source.pipeline}`, which writes it, first",
        )
    return replace(join, snapshot=main["snapshot-id"], rows=metadata.rows(metadata.summary(main)))
