"""Lets the followers of a pipeline's table catch up with its commits.

Guarantee: a follower shows commits in their order, each at least once: the tag moves after the rows are shown. No follower fails or delays
a batch: they follow when the batches of a run are published.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from framework import amounts, components
from framework.engine.context import Context
from framework.engine.feed.changes import NOTHING
from framework.engine.follow import waiting
from framework.engine.follow.committed import Committed
from framework.engine.follow.waiting import Step
from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.rules import run_record
from framework.engine.spark import defects
from framework.engine.spark.java_errors import CommitRefused, CommitUnknown
from framework.errors import SluiceError
from framework.home import private
from framework.model import Follower, Pipeline

KILL_POINTS = (
    "shown",  # the rows of a step are shown
    "tagged",  # the tag is on its last snapshot
)
_TRIES = 5  # how often the tag is moved if other commits come between


@dataclass(frozen=True)
class Followed:
    """What a follower has shown after a run, or why it could not."""

    pipeline: Pipeline
    follower: Follower
    rows: int
    trouble: SluiceError | None = None

    @property
    def line(self) -> str:
        return f"{self.pipeline.name}: {amounts.counted(self.rows, 'row')} to the {self.follower.title}"


def _never() -> bool:
    return False


def after_run(context: Context, pipeline: Pipeline, stopped: Callable[[], bool] = _never) -> Iterator[Followed]:
    """Each follower's rows. A follower that fails does not stop the others; its failure is recorded."""
    for follower in pipeline.also:
        rows = 0
        try:
            for count in _catch_up(context, pipeline, follower, stopped):
                rows += count
        except Exception as error:
            context.forget_spark_if_gone()
            trouble = _trouble(pipeline, follower, defects.as_sluice_error(pipeline.name, error))
            run_record.record_follower(pipeline.name, follower.tag, trouble)
            yield Followed(pipeline, follower, rows, trouble)
            continue
        run_record.record_follower(pipeline.name, follower.tag, None)
        if rows:
            yield Followed(pipeline, follower, rows)


def _trouble(pipeline: Pipeline, follower: Follower, error: SluiceError) -> SluiceError:
    message = f"{pipeline.table.identifier} has all rows, the {follower.title} does not: {error.message}"
    return SluiceError(error.code, message, error.hint)


def _catch_up(context: Context, pipeline: Pipeline, follower: Follower, stopped: Callable[[], bool]) -> Iterator[int]:
    """The number of rows of each step."""
    catalog, identifier = pipeline.table.catalog, pipeline.table.identifier
    with _turn(pipeline, follower) as ours:
        while ours and not stopped():
            table = metadata.read(catalog, identifier)
            step = waiting.step(table, follower) if table else None
            if table is None or step is None:
                return
            yield _show(context, pipeline, follower, table, step)
            context.at("shown")
            _tag(context, pipeline, follower, step)
            context.at("tagged")


def _show(context: Context, pipeline: Pipeline, follower: Follower, table: Metadata, step: Step) -> int:
    committed = Committed(
        pipeline, follower, table=table, step=step, lake=lambda: context.lake(pipeline), secrets=context.plan.secrets
    )
    shown: int = components.load(waiting.PACKAGE, follower.type).follow(committed)
    return shown


def _tag(context: Context, pipeline: Pipeline, follower: Follower, step: Step) -> None:
    lake = context.lake(pipeline)
    for left in reversed(range(_TRIES)):
        table = lake.load(pipeline.table.identifier)
        if table is None:
            return
        try:
            lake.tag(table, follower.tag, step.until, None if step.since == NOTHING else step.since)
            return
        except (CommitRefused, CommitUnknown) as error:
            if _has_moved(pipeline, follower, step):
                return
            if not left:
                message = f"the catalog did not record what the {follower.title} has got: {error}"
                raise SluiceError("not-recorded", message, "the next run shows these rows again") from None


def _has_moved(pipeline: Pipeline, follower: Follower, step: Step) -> bool:
    """Whether the tag is where it should be, after an answer that was lost, or where another process put it."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    return table is None or table.refs.get(follower.tag, NOTHING) != step.since


@contextmanager
def _turn(pipeline: Pipeline, follower: Follower) -> Iterator[bool]:
    """Whether no other process of this machine lets this follower catch up now."""
    with (private("followers") / f"{pipeline.name}-{follower.type}-{follower.name}").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
