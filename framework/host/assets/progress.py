"""Log lines of a run in Dagster: the waiting messages, the start of Spark, the points of each batch, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dagster import AssetExecutionContext, OpExecutionContext

from framework.base.amounts import counted
from framework.core.run.events import BatchDone
from framework.core.spark import warm, warm_jvm
from framework.operations.metrics import in_words
from framework.operations.observe.progress import PipelineProgress
from framework.plan import Pipeline, Plan

_MAX_PARTITIONS = 10  # partitions that are named
_POINTS = {
    "branched": "reading the next messages and writing their rows to files",
    "staged": "the rows are written; checking them before they are published",
    "checked": "publishing the batch",
    "published": "the batch is published",
}


def waiting(context: AssetExecutionContext, pipeline: Pipeline, watched: PipelineProgress) -> None:
    """Log what the run is going to read, by offsets."""
    source = ", ".join(pipeline.sources)
    if watched.lag is None:
        return  # the run says why
    noun = pipeline.noun
    context.log.info(f"{counted(watched.lag, noun)} waiting in {source}; {watched.table} has {counted(watched.rows, 'row')}")
    behind = [offsets for offsets in watched.offsets if offsets.waiting]
    for offsets in behind[:_MAX_PARTITIONS]:
        context.log.info(f"{offsets.partition}: offsets {offsets.next_offset:,} to {offsets.end - 1:,}")
    if len(behind) > _MAX_PARTITIONS:
        context.log.info(f"… and {counted(len(behind) - _MAX_PARTITIONS, 'more partition')}")


def points(context: AssetExecutionContext) -> Callable[[str], None]:
    """A function for the points of a batch. The first batch, which takes longest, is logged point by point; each other batch gets
    one line at its end."""
    remaining_points = dict(_POINTS)

    def log(name: str) -> None:
        if name in remaining_points:
            context.log.info(remaining_points.pop(name))

    return log


def started(context: AssetExecutionContext | OpExecutionContext, resource: Any, plan: Plan, rows: int | None = None) -> Any:
    """The session of this run, for about so many rows. Only a start is logged: the tables of a run share a session."""
    if resource.has_session(rows):
        return resource.session_of(plan, rows)
    began = time.monotonic()
    waits = warm.is_wanted(plan) and warm_jvm.living_jvm() is not None
    context.log.info("attaching to the warm Spark" if waits else "starting Spark, which takes a few seconds")
    spark = resource.session_of(plan, rows)
    context.log.info(f"Spark {spark.version} runs after {time.monotonic() - began:.1f} s")
    return spark


def batch(context: AssetExecutionContext, event: BatchDone) -> None:
    done = event.batch
    parts = [f"batch {done.number}", f"{done.read:,} read", *in_words(done), f"{done.seconds:.1f} s", f"{done.waiting:,} waiting"]
    context.log.info(", ".join(parts))
