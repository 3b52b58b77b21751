"""The loop of runs: batches until nothing waits, then followers and maintenance, as a sequence of events.

*Guarantee* A run raises nothing that a pipeline, a follower or a system causes: that is an event, and recorded. Closing the sequence ends
the run after the commit that is under way. Whoever wants to show, count or send something reads events; nothing is called back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from framework.base.errors import Paused, SluiceError, SparkEnded
from framework.core.context.context import Context
from framework.core.follow import follow
from framework.core.follow.follow import Followed
from framework.core.maintain import maintain
from framework.core.publish import waiting
from framework.core.publish.batch import Backlog, Batch, next_batch
from framework.core.rules import journal
from framework.core.run.events import BatchDone, Began, Ended, Event, Failed, LeftOut, Maintained
from framework.core.run.failures import named
from framework.core.spark.causes import spark_ended
from framework.plan import Pipeline, in_order

_FOLLOW = 60.0  # seconds of batches after which followers catch up
_LIST = 2.0  # seconds of batches after which followers catch up that list the table in another catalog
_INTERVAL = 10.0  # seconds between two checks of how much waits


def never() -> bool:
    return False


Runs: TypeAlias = Callable[[Sequence[Pipeline], Callable[[], bool]], Iterator[Event]]
"""Runs some pipelines until nothing waits, or until the function returns true."""


def keep_up(
    runs: Runs,
    pipelines: Sequence[Pipeline],
    every: float,
    stop: threading.Event,
    is_full: Callable[[Pipeline], bool] = lambda _: False,
) -> Iterator[Event]:
    """Runs the pipelines every `every` seconds until `stop` is set; earlier those for which much waits. One that fails is tried again the
    next time."""
    can_fill = [pipeline for pipeline in pipelines if pipeline.run.after]
    chosen, next_turn = pipelines, time.monotonic() + every
    while not stop.is_set():
        yield from runs(chosen, stop.is_set)
        rest = next_turn - time.monotonic()
        if stop.wait(max(0.0, min(rest, _INTERVAL if can_fill else rest))):
            return
        if time.monotonic() < next_turn:
            chosen = [pipeline for pipeline in can_fill if is_known_full(pipeline, is_full)]
        else:
            chosen, next_turn = pipelines, time.monotonic() + every


def is_known_full(pipeline: Pipeline, is_full: Callable[[Pipeline], bool]) -> bool:
    """Whether so much waits that a run begins before its time; not if an error hides it."""
    try:
        return is_full(pipeline)
    except SluiceError:
        return False  # the next run says what is wrong


def run_all(context: Context, pipelines: Sequence[Pipeline], stopped: Callable[[], bool] = never) -> Iterator[Event]:
    """Runs pipelines one after another, those first whose tables others read. One that fails does not stop the others."""
    for pipeline in in_order(pipelines):
        yield from run(context, pipeline, stopped)
        if stopped():
            return


def run(context: Context, pipeline: Pipeline, stopped: Callable[[], bool] = never) -> Iterator[Event]:
    """Runs a pipeline until nothing waits; then its followers catch up, and its tables are maintained if they are due. A follower that
    fails stops neither the run nor the others."""
    try:
        journal.refuse_paused(pipeline)
        yield from _until_stopped(context, pipeline, stopped)
    except Paused as reason:
        yield LeftOut(pipeline, reason)
    except Exception as error:
        context.forget_what_failed()
        yield Failed(pipeline, named(pipeline, error))
        yield from followed(context, pipeline, stopped)  # with all that the table has
    yield Ended(pipeline)


def turn(context: Context, pipeline: Pipeline, stopped: Callable[[], bool], is_over: Callable[[Batch], bool]) -> Iterator[Event]:
    """The batches of a run alone, until nothing waits, the turn is over, or the process is stopped. Followers and maintenance are work
    of their own, `follow` and `tend`."""
    try:
        journal.refuse_paused(pipeline)
        for event in _batches(context, pipeline, stopped):
            yield event
            if isinstance(event, BatchDone) and (stopped() or is_over(event.batch)):
                journal.record_success(pipeline.journal_name)
                break
        journal.refuse_paused(pipeline)  # else what it leaves would wait for the next message
    except Paused as reason:
        yield LeftOut(pipeline, reason)
    except Exception as error:
        context.forget_what_failed()
        yield Failed(pipeline, named(pipeline, error))
    yield Ended(pipeline)


def tend(context: Context, pipeline: Pipeline, byte_limit: int = maintain.AFTER_RUN) -> Iterator[Maintained]:
    """Maintains the pipeline's tables if they are due, and compacts so many bytes at most."""
    for done in maintain.after_run(context, pipeline, byte_limit):
        yield Maintained(pipeline, done)


def _behind(context: Context, pipeline: Pipeline, stopped: Callable[[], bool], published: bool) -> Iterator[Event]:
    yield from followed(context, pipeline, stopped)
    maintained = False
    for event in tend(context, pipeline) if published else ():
        maintained = True
        yield event
    if maintained:  # the table has other files now
        yield from followed(context, pipeline, stopped)


def _until_stopped(context: Context, pipeline: Pipeline, stopped: Callable[[], bool]) -> Iterator[Event]:
    followers, published = _FollowersMeanwhile(context, pipeline, stopped), False
    for event in _batches(context, pipeline, stopped):
        yield event
        if isinstance(event, BatchDone):
            published = True
            if stopped():
                return
            yield from followers.due()
    yield from _behind(context, pipeline, stopped, published)


class _FollowersMeanwhile:
    """The followers of a run whose batches may come for ever: they catch up between two batches, now and then."""

    def __init__(self, context: Context, pipeline: Pipeline, stopped: Callable[[], bool]) -> None:
        self.context, self.pipeline, self.stopped = context, pipeline, stopped
        self.follow_time, self.list_time = time.monotonic() + _FOLLOW, time.monotonic() + _LIST

    def due(self) -> Iterator[Event]:
        """Lets followers catch up if it is time. Their failures are told at the end of the run, which tries them again."""
        if time.monotonic() > self.follow_time:
            yield from self._catch_up(self.pipeline)
            self.follow_time, self.list_time = time.monotonic() + _FOLLOW, time.monotonic() + _LIST
        elif self.pipeline.published and time.monotonic() > self.list_time:
            failures = yield from self._catch_up(replace(self.pipeline, also=self.pipeline.published))
            # A catalog that does not answer must not slow each batch.
            self.list_time = time.monotonic() + (_FOLLOW if failures else _LIST)

    def _catch_up(self, pipeline: Pipeline) -> Generator[Event, None, int]:
        """Yields what followers show, and returns how many failed."""
        failures = 0
        for event in followed(self.context, pipeline, self.stopped):
            if isinstance(event, Failed):
                failures += 1
            else:
                yield event
        return failures


def followed(context: Context, pipeline: Pipeline, stopped: Callable[[], bool] = never) -> Iterator[Followed | Failed]:
    """Lets followers catch up."""
    for result in follow.after_run(context, pipeline, stopped):
        yield Failed(pipeline, result.trouble, result.follower) if result.trouble else result


def _batches(context: Context, pipeline: Pipeline, stopped: Callable[[], bool]) -> Iterator[Began | BatchDone]:
    """The pipeline's batches, until nothing waits in its topics. If nothing waits at first, no JVM starts. The outcome is recorded, and
    every error has a code."""
    try:
        backlog = waiting.backlog(context, pipeline)
        yield Began(pipeline, backlog.rows)
        if backlog.rows:
            context.expect(backlog.rows)
            for batch in _published(context, pipeline, backlog):
                yield BatchDone(pipeline, batch)
            if journal.read(pipeline.journal_name).paused:
                return
    except Exception as error:
        # Another thread may have reset PySpark after the end of its JVM, so that anything can have failed here.
        is_lost = not isinstance(error, SluiceError) and context.has_lost_spark()
        named_error = named(pipeline, spark_ended() if is_lost else error)
        if isinstance(named_error, SparkEnded) and stopped():
            return  # the signal that stops this process may stop Spark too: no message is lost
        journal.record_failure(pipeline.journal_name, named_error)
        raise named_error from named_error.__cause__
    journal.record_success(pipeline.journal_name)


def batches(context: Context, pipeline: Pipeline) -> Iterator[Batch]:
    """The batches of a run alone, without followers and maintenance. Raises the error that stops them."""
    for event in _batches(context, pipeline, never):
        if isinstance(event, BatchDone):
            yield event.batch


def _published(context: Context, pipeline: Pipeline, backlog: Backlog) -> Iterator[Batch]:
    """Publishes batches until nothing waits or the pipeline is paused. Before a run, `refuse_paused` raises."""
    reading = backlog.reading
    while not journal.read(pipeline.journal_name).paused:
        pipeline = context.schemas.current(pipeline)
        batch = next_batch(context, pipeline, reading=reading)
        if batch is None:
            yield from waiting.batches(context, pipeline)
            return
        yield batch
        reading = None
        if not batch.waiting:
            backlog = waiting.backlog(context, pipeline)
            reading = backlog.reading
            if not backlog.rows:
                return
