"""The snapshots of the tables that a batch looks rows up in, and of its own, on which it measures: the newest ones when it begins."""

from __future__ import annotations

from dataclasses import replace

from framework.engine.iceberg import metadata
from framework.errors import SourceMissing
from framework.model import Join, Pipeline


def pinned(pipeline: Pipeline) -> Pipeline:
    """The pipeline, whose steps read the snapshots of now."""
    if not pipeline.joins and not pipeline.bounds:
        return pipeline
    own = metadata.read(pipeline.table.catalog, pipeline.table.identifier) if pipeline.bounds else None
    snapshot = own.main["snapshot-id"] if own and own.main else None
    return replace(
        pipeline,
        steps=tuple(
            replace(
                step,
                join=step.join and _now(step.join, pipeline),
                bounds=tuple(replace(each, snapshot=snapshot) for each in step.bounds),
            )
            for step in pipeline.steps
        ),
    )


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
