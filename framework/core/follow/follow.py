"""Lets the followers of a pipeline's table catch up with its commits.

Guarantee: a follower shows commits in their order, each at least once. A tag says which snapshot is being shown, so that a run that dies is
repeated exactly, whatever was committed since; another tag moves to that snapshot once it is shown. No follower fails a batch. A
follower that writes where a process that wakes up late could still write has `take_turn`: it ends all earlier writers before the tags
are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial

from framework.base import amounts, iso_times
from framework.base.errors import SluiceError, TurnTaken
from framework.base.home import private, turn as turn_of
from framework.core.context.context import Context
from framework.core.follow import waiting
from framework.core.follow.committed import FollowInput
from framework.core.follow.taken import taken
from framework.core.iceberg import metadata
from framework.core.iceberg.commit import Outcome, commit
from framework.core.rules import journal
from framework.core.sources.changes import NOTHING
from framework.core.spark import defects
from framework.plan import Follower, Pipeline
from framework.systems import secret_uses

KILL_POINTS = (
    "begun",  # a tag says which snapshot is being shown
    "shown",  # the rows of a step are shown
    "tagged",  # the follower's tag is on the snapshot that was shown
)
_RETRY_AFTER = 600  # seconds before a run is started for a follower that failed
_TURN = 10.0  # seconds to wait for another process of this machine


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
    """Lets each follower catch up; yields followers that showed rows or failed. A follower that fails does not stop the others;
    its failure is recorded until it has caught up."""
    for follower in pipeline.also:
        rows = 0
        try:
            for count in _catch_up(context, pipeline, follower, stopped):
                rows += count
        except Exception as error:
            context.forget_what_failed()
            trouble = _trouble(pipeline, follower, defects.as_sluice_error(pipeline.name, error))
            if not isinstance(error, TurnTaken):  # the other process shows the rows
                journal.record_follower(pipeline.journal_name, follower.tag, trouble)
            yield Followed(pipeline, follower, rows, trouble)
            continue
        if rows:
            yield Followed(pipeline, follower, rows)


def should_try(pipeline: Pipeline) -> bool:
    """Whether a follower has rows to show and has not failed a short time ago. Needs no JVM."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier) if pipeline.also else None
    if table is None:
        return False
    failures = journal.read(pipeline.journal_name).followers
    latest_try = datetime.now(timezone.utc) - timedelta(seconds=_RETRY_AFTER)
    waiting_tags = [follower.tag for follower in pipeline.also if waiting.step(table, follower)]
    return any(tag not in failures or iso_times.read(failures[tag].at) < latest_try for tag in waiting_tags)


def _trouble(pipeline: Pipeline, follower: Follower, error: SluiceError) -> SluiceError:
    message = f"{pipeline.table.identifier} has all rows, the {follower.title} does not: {error.message}"
    return SluiceError(error.code, message, error.hint)


def _catch_up(context: Context, pipeline: Pipeline, follower: Follower, stopped: Callable[[], bool]) -> Iterator[int]:
    """The number of rows of each step."""
    with _turn(follower, pipeline) as is_ours, secret_uses.at_work():
        turn = None
        while not stopped():
            table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
            step = waiting.step(table, follower) if table else None
            if table is None or step is None:
                journal.record_follower(pipeline.journal_name, follower.tag, None)
                return
            if not is_ours:
                raise taken(follower)
            committed = FollowInput(
                pipeline, follower, table=table, step=step, lake=lambda: context.lake(pipeline), secrets=context.plan.secrets, turn=turn
            )  # fmt: skip
            if follower.take_turn is not None and turn is None:
                turn = follower.take_turn(committed)
                continue  # with what an earlier sender has shown until now
            yield _show(context, pipeline, follower, committed)


def _show(context: Context, pipeline: Pipeline, follower: Follower, committed: FollowInput) -> int:
    """Shows one step. Once the snapshot is shown, the follower's own tag moves to it. Before, another tag names the snapshot, unless the
    follower shows only the newest one."""
    table, step = committed.table, committed.step
    earlier = None if step.since == NOTHING else step.since
    if follower.showing not in table.refs and not follower.latest_only:
        _tag(context, pipeline, follower, {follower.showing: step.until}, {follower.tag: earlier, follower.showing: None})
        context.reached("begun")
    rows = follower.follow(committed)
    context.reached("shown")
    shown_tags = {follower.tag: step.until, **({follower.before: step.since} if earlier and not follower.by_rows else {})}
    begun_snapshot = None if follower.latest_only else step.until
    _tag(context, pipeline, follower, shown_tags, {follower.tag: earlier, follower.showing: begun_snapshot}, (follower.showing,))
    context.reached("tagged")
    return rows


def _tag(
    context: Context,
    pipeline: Pipeline,
    follower: Follower,
    tags: Mapping[str, int],
    instead_of: Mapping[str, int | None],
    remove: tuple[str, ...] = (),
) -> None:
    """Moves the follower's tags in one commit, unless another process has moved them."""
    lake = context.lake(pipeline)

    def judge() -> Outcome[None] | Callable[[], None]:
        table = lake.load(pipeline.table.identifier)
        if table is None:
            raise _not_recorded("the table is gone")
        table_refs = table.refs()
        refs = {name: ref.snapshotId() for name in (*tags, *instead_of, *remove) if (ref := table_refs.get(name))}
        if all(refs.get(name) == snapshot for name, snapshot in tags.items()) and not any(name in refs for name in remove):
            return Outcome(None)
        if any(refs.get(name) != snapshot for name, snapshot in instead_of.items()):
            raise taken(follower)
        return partial(lake.tag, table, tags, instead_of, remove)

    commit(judge, _not_recorded)


def _not_recorded(cause: str) -> SluiceError:
    message = f"the catalog did not record what was shown: {cause}"
    return SluiceError("not-recorded", message, "the next run shows these rows again")


def _turn(follower: Follower, pipeline: Pipeline) -> AbstractContextManager[bool]:
    """Yields whether no other process of this machine lets this follower catch up now. This saves work; it is the follower's own
    `take_turn` that proves that no older rows come after newer ones."""
    file = private("followers") / f"{pipeline.journal_name.replace('/', '-')}-{follower.tag}"
    return turn_of(file, _TURN)
