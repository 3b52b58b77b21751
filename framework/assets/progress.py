"""What the log of a run in Dagster says while it works: what waits, that Spark starts, where each batch is, what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dagster import AssetExecutionContext

from framework.engine import session
from framework.engine.batch import Batch
from framework.plan.model import Pipeline, Plan
from framework.watch import Watched

_MOST = 10  # partitions that are named
_POINTS = {
    "branched": "reading the next messages and writing their rows to a staging branch",
    "staged": "the rows are written; checking them before they are published",
    "checked": "publishing the batch",
    "published": "the batch is published",
}


def waiting(context: AssetExecutionContext, pipeline: Pipeline, seen: Watched) -> None:
    """What the run is going to read, by offsets."""
    source = ", ".join(pipeline.sources)
    if seen.lag is None:
        return  # the run says why
    what = "rows" if pipeline.source else "messages"
    context.log.info(f"{seen.lag:,} {what} wait in {source}, {seen.rows:,} rows are in {seen.table}")
    behind = [each for each in seen.offsets if each.waiting]
    for each in behind[:_MOST]:
        context.log.info(f"{each.partition}: offsets {each.next:,} to {each.end - 1:,}")
    if len(behind) > _MOST:
        context.log.info(f"… and {len(behind) - _MOST} more partitions")


def points(context: AssetExecutionContext) -> Callable[[str], None]:
    """Called at each point between two commits of a batch. The first batch, which takes longest, is followed step by step; of the
    others the log has the line at their end."""
    left = dict(_POINTS)

    def at(name: str) -> None:
        if name in left:
            context.log.info(left.pop(name))

    return at


def started(context: AssetExecutionContext, plan: Plan) -> Any:
    """The session of this run."""
    began = time.monotonic()
    context.log.info("starting Spark, which takes some seconds")
    session.prepare(plan)
    spark = context.resources.spark.spark_session
    context.log.info(f"Spark {spark.version} runs after {time.monotonic() - began:.1f} s")
    return spark


def batch(context: AssetExecutionContext, done: Batch) -> None:
    parts = [f"{done.read:,} read", f"{done.rows:,} rows"]
    if done.changed:
        parts += [f"{count:,} {word}" for word, count in done.changed.words.items() if count]
    parts += [f"{done.bad:,} bad"] if done.bad else []
    parts += [f"{done.filtered:,} filtered"] if done.filtered else []
    parts += [f"{count:,} not as `{name}` expects" for name, count in done.warnings]
    context.log.info(", ".join([f"batch {done.number}", *parts, f"{done.seconds:.1f} s", f"{done.waiting:,} waiting"]))
