"""Runs pipelines until they are caught up, once or repeatedly, in one warm process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from framework.base.errors import Paused, SluiceError, SparkEnded
from framework.core import openlineage
from framework.core.context.context import Context
from framework.core.context.outage import outage
from framework.core.follow import follow
from framework.core.follow.follow import Followed
from framework.core.maintain import maintain
from framework.core.maintain.maintain import MaintenanceDone
from framework.core.publish import waiting
from framework.core.publish.batch import Batch, next_batch
from framework.core.rules import journal
from framework.core.spark import defects
from framework.core.spark.causes import is_spark_gone
from framework.plan import Pipeline, in_order

_FOLLOW = 60.0  # seconds of batches after which followers catch up
_LIST = 2.0  # seconds of batches after which followers catch up that list the table in another catalog
_INTERVAL = 10.0  # seconds between two checks of how much waits


@dataclass(frozen=True)
class Failed:
    """A pipeline that stopped, with its error."""

    pipeline: str
    error: SluiceError
    of_follower: bool = False  # the table itself has all


def _ignored(_done: MaintenanceDone) -> None:
    pass


def _unheard(_followed: Followed) -> None:
    pass


def _never(_pipeline: Pipeline) -> bool:
    return False


def catch_up(
    context: Context,
    pipelines: Sequence[Pipeline],
    on_batch: Callable[[Batch], None],
    stopped: Callable[[], bool],
    around: Callable[[Pipeline], AbstractContextManager[object]] = nullcontext,
    on_maintained: Callable[[MaintenanceDone], object] = _ignored,
    on_followed: Callable[[Followed], object] = _unheard,
) -> tuple[Failed, ...]:
    """Runs each pipeline until nothing waits, inside its `around` block; then its followers catch up, and its tables are maintained if
    they are due. A pipeline or a follower that fails does not stop the others."""
    failures: list[Failed] = []
    for pipeline in in_order(pipelines):
        try:
            journal.refuse_paused(pipeline)
            published = False
            follow_time, list_time = time.monotonic() + _FOLLOW, time.monotonic() + _LIST
            with around(pipeline):
                for batch in batches(context, pipeline, stopped):
                    published = True
                    on_batch(batch)
                    if stopped():
                        return tuple(failures)
                    if time.monotonic() > follow_time:  # messages may come for ever
                        list(_followed(context, pipeline, stopped, on_followed))
                        follow_time, list_time = time.monotonic() + _FOLLOW, time.monotonic() + _LIST
                    elif pipeline.published and time.monotonic() > list_time:
                        follow_failures = list(
                            _followed(context, replace(pipeline, also=pipeline.published), stopped, on_followed)
                        )
                        # A catalog that does not answer must not slow each batch.
                        list_time = time.monotonic() + (_FOLLOW if follow_failures else _LIST)
                failures += _followed(context, pipeline, stopped, on_followed)
                maintenance = list(maintain.after_run(context, pipeline)) if published else []
                for result in maintenance:
                    on_maintained(result)
                if maintenance:  # the table has other files now
                    failures += _followed(context, pipeline, stopped, on_followed)
        except BrokenPipeError:
            raise  # the reader of standard output is gone
        except Exception as error:
            context.forget_spark_if_gone()
            failures.append(Failed(pipeline.name, _named(pipeline, error)))
            if not isinstance(error, Paused):  # followers catch up with the table all the same
                failures += _followed(context, pipeline, stopped, on_followed)
        if stopped():
            break
    return tuple(failures)


def _followed(
    context: Context, pipeline: Pipeline, stopped: Callable[[], bool], on_followed: Callable[[Followed], object]
) -> Iterator[Failed]:
    """Lets followers catch up; yields the failures of those that could not."""
    for followed in follow.after_run(context, pipeline, stopped):
        if followed.trouble:
            yield Failed(pipeline.name, followed.trouble, of_follower=True)
        else:
            on_followed(followed)


def batches(context: Context, pipeline: Pipeline, stopped: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
    """The pipeline's batches, until nothing waits in its topics. If nothing waits at first, no JVM starts. The outcome is
    recorded, and every error has a code."""
    try:
        if rows := waiting.count(context, pipeline):
            context.expect(rows)
            with openlineage.reported_run(pipeline) as report:
                for batch in _batches(context, pipeline):
                    report.add(batch.rows)
                    yield batch
            if journal.read(pipeline.journal_name).paused:
                return
    except Exception as error:
        named_error = _named(pipeline, error)
        if isinstance(named_error, SparkEnded) and stopped():
            return  # the signal that stops this process may stop Spark too: no message is lost
        journal.record_failure(pipeline.journal_name, named_error)
        if named_error is error:
            raise
        raise named_error from error
    journal.record_success(pipeline.journal_name)


def _batches(context: Context, pipeline: Pipeline) -> Iterator[Batch]:
    """The pipeline's batches, until nothing waits or it is paused. Before a run, `refuse_paused` raises."""
    while not journal.read(pipeline.journal_name).paused:
        pipeline = context.schemas.current(pipeline)
        batch = next_batch(context, pipeline)
        if batch is None:
            yield from waiting.batches(context, pipeline)
            return
        yield batch
        if not waiting.count(context, pipeline):
            return


def _named(pipeline: Pipeline, error: Exception) -> SluiceError:
    is_gone = isinstance(error, SparkEnded) if isinstance(error, SluiceError) else is_spark_gone(error)
    # `as_sluice_error` comes last: it writes an unexpected error into a file, and an outage is expected.
    return (None if is_gone else outage(pipeline, error)) or defects.as_sluice_error(pipeline.name, error)


def keep_up(
    context: Context,
    pipelines: Sequence[Pipeline],
    every: float,
    on_batch: Callable[[Batch], None],
    on_failure: Callable[[Failed], object],
    stop: threading.Event,
    around: Callable[[Pipeline], AbstractContextManager[object]] = nullcontext,
    on_maintained: Callable[[MaintenanceDone], object] = _ignored,
    on_followed: Callable[[Followed], object] = _unheard,
    is_full: Callable[[Pipeline], bool] = _never,
) -> None:
    """Catches up every `every` seconds until `stop` is set; earlier with a pipeline for which much waits. A failure is reported,
    and the pipeline is retried the next time."""
    can_fill = [pipeline for pipeline in pipelines if pipeline.run.after]
    chosen, next_turn = pipelines, time.monotonic() + every
    while not stop.is_set():
        for failure in catch_up(context, chosen, on_batch, stop.is_set, around, on_maintained, on_followed) if chosen else ():
            on_failure(failure)
        rest = next_turn - time.monotonic()
        if stop.wait(max(0.0, min(rest, _INTERVAL if can_fill else rest))):
            return
        if time.monotonic() < next_turn:
            chosen = [pipeline for pipeline in can_fill if _is_full(pipeline, is_full)]
        else:
            chosen, next_turn = pipelines, time.monotonic() + every


def _is_full(pipeline: Pipeline, is_full: Callable[[Pipeline], bool]) -> bool:
    try:
        return is_full(pipeline)
    except SluiceError:
        return False  # the next run says what is wrong
