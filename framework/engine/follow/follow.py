"""Lets the followers of a pipeline's table catch up with its commits.

Guarantee: a follower shows commits in their order, each at least once. A tag says which snapshot is being shown, so that a run that dies is
repeated exactly, whatever was committed since; another one moves when it is shown. No follower fails a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from framework import amounts, components
from framework.engine.context import Context
from framework.engine.feed.changes import NOTHING
from framework.engine.follow import waiting
from framework.engine.follow.committed import Committed
from framework.engine.follow.waiting import Step
from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.rules import attempts, run_record
from framework.engine.spark import defects
from framework.engine.spark.java_errors import CommitRefused, CommitUnknown
from framework.errors import SluiceError
from framework.home import private
from framework.model import Follower, Pipeline
from framework.plan.followers import PACKAGE

KILL_POINTS = (
    "begun",  # a tag says which snapshot is being shown
    "shown",  # the rows of a step are shown
    "tagged",  # the tag of what is shown is on it
)
_AGAIN = 600  # seconds before a run is started for a follower that failed
_TRIES = 5  # how often the tag is moved if other commits come between


@dataclass(frozen=True)
class Followed:
    """The result of a follower after a run, or the reason of its failure."""

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
    """Each follower's rows. A follower that fails does not stop the others; its failure is recorded until it has caught up."""
    for follower in pipeline.also:
        rows = 0
        try:
            for count in _catch_up(context, pipeline, follower, stopped):
                rows += count
        except Exception as error:
            context.forget_spark_if_gone()
            trouble = _trouble(pipeline, follower, defects.as_sluice_error(pipeline.name, error))
            run_record.record_follower(pipeline.recorded_as, follower.tag, trouble)
            yield Followed(pipeline, follower, rows, trouble)
            continue
        if rows:
            yield Followed(pipeline, follower, rows)


def should_try(pipeline: Pipeline) -> bool:
    """Whether a follower has something to show and has not failed just now. No JVM is needed."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier) if pipeline.also else None
    if table is None:
        return False
    failed = run_record.read(pipeline.recorded_as).followers
    soon = datetime.now(timezone.utc) - timedelta(seconds=_AGAIN)
    behind = [follower.tag for follower in pipeline.also if waiting.step(table, follower)]
    return any(tag not in failed or datetime.fromisoformat(failed[tag].at) < soon for tag in behind)


def _trouble(pipeline: Pipeline, follower: Follower, error: SluiceError) -> SluiceError:
    message = f"{pipeline.table.identifier} has all rows, the {follower.title} does not: {error.message}"
    return SluiceError(error.code, message, error.hint)


def _catch_up(context: Context, pipeline: Pipeline, follower: Follower, stopped: Callable[[], bool]) -> Iterator[int]:
    """The number of rows of each step."""
    with _turn(follower, pipeline) as ours:
        while ours and not stopped():
            table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
            step = waiting.step(table, follower) if table else None
            if table is None or step is None:
                run_record.record_follower(pipeline.recorded_as, follower.tag, None)
                return
            was = None if step.since == NOTHING else step.since
            if follower.showing not in table.refs and not follower.latest_only:
                _tag(context, pipeline, {follower.showing: step.until}, {follower.tag: was, follower.showing: None})
                context.at("begun")
            yield _show(context, pipeline, follower, table, step)
            context.at("shown")
            done = {follower.tag: step.until, **({follower.before: step.since} if was and not follower.by_rows else {})}
            showing = None if follower.latest_only else step.until
            _tag(context, pipeline, done, {follower.tag: was, follower.showing: showing}, (follower.showing,))
            context.at("tagged")


def _show(context: Context, pipeline: Pipeline, follower: Follower, table: Metadata, step: Step) -> int:
    committed = Committed(
        pipeline, follower, table=table, step=step, lake=lambda: context.lake(pipeline), secrets=context.plan.secrets
    )
    followed: int = components.load(PACKAGE, follower.type).follow(committed)
    return followed


def _tag(
    context: Context, pipeline: Pipeline, tags: Mapping[str, int], instead_of: Mapping[str, int | None], remove: tuple[str, ...] = ()
) -> None:  # fmt: skip
    """Moves the follower's tags in one commit. A commit of somebody else may come between, and an answer be lost."""
    lake = context.lake(pipeline)
    cause = ""
    for _ in range(_TRIES):
        table = lake.load(pipeline.table.identifier)
        if table is None:
            break
        try:
            lake.tag(table, tags, instead_of, remove)
            return
        except (CommitRefused, CommitUnknown) as error:
            cause = str(error)
            if _are_moved(pipeline, tags, remove):
                return
    raise SluiceError(
        "not-recorded", f"the catalog did not record what was shown: {cause}", "the next run shows these rows again"
    )


def _are_moved(pipeline: Pipeline, tags: Mapping[str, int], remove: tuple[str, ...]) -> bool:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    refs = table.refs if table else {}
    return all(refs.get(name) == snapshot for name, snapshot in tags.items()) and not any(name in refs for name in remove)


def _turn(follower: Follower, pipeline: Pipeline) -> AbstractContextManager[bool]:
    """Whether no other process of this machine lets this follower catch up now."""
    return attempts.turn(private("followers") / f"{pipeline.recorded_as.replace('/', '-')}-{follower.tag}")
