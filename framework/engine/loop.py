"""Pipelines until they are caught up, once or again and again, in one warm process."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from framework.engine.context import Context
from framework.engine.kafka.outage import outage
from framework.engine.publish.batch import Batch, next_batch, nothing_waits
from framework.engine.rules import run_record
from framework.engine.spark import defects
from framework.engine.spark.causes import is_spark_gone
from framework.errors import SluiceError, SparkEnded
from framework.model import Pipeline, in_order


@dataclass(frozen=True)
class Failure:
    """A pipeline that did not go on."""

    pipeline: str
    error: SluiceError


def catch_up(
    context: Context,
    pipelines: Sequence[Pipeline],
    on_batch: Callable[[Batch], None],
    stopped: Callable[[], bool],
    around: Callable[[Pipeline], AbstractContextManager[object]] = nullcontext,
) -> tuple[Failure, ...]:
    """Runs each pipeline until nothing waits, inside of what is `around` it. One that fails does not hold up the others."""
    failures: list[Failure] = []
    for pipeline in in_order(pipelines):
        try:
            run_record.refuse_paused(pipeline.name)
            with around(pipeline):
                for batch in batches(context, pipeline, stopped):
                    on_batch(batch)
                    if stopped():
                        return tuple(failures)
        except BrokenPipeError:
            raise  # nobody listens any more
        except Exception as error:
            context.forget_spark_if_gone()
            failures.append(Failure(pipeline.name, _named(pipeline, error)))
        if stopped():
            break
    return tuple(failures)


def batches(context: Context, pipeline: Pipeline, stopped: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
    """The pipeline's batches up to what is in the topic when it is asked last. Where nothing waits, no JVM is started. What came
    of it is noted, and every error has a name."""
    try:
        while not nothing_waits(context, pipeline):
            if run_record.read(pipeline.name).paused:
                return  # between two batches: whoever asks for a run knows that beforehand
            pipeline = context.schemas.current(pipeline)
            batch = next_batch(context, pipeline)
            if batch is None:
                break
            yield batch
    except Exception as error:
        named = _named(pipeline, error)
        if isinstance(named, SparkEnded) and stopped():
            return  # who stops this process may stop Spark with it: nothing is lost
        run_record.record_failure(pipeline.name, named)
        if named is error:
            raise
        raise named from error
    run_record.record_success(pipeline.name)


def _named(pipeline: Pipeline, error: Exception) -> SluiceError:
    gone = isinstance(error, SparkEnded) if isinstance(error, SluiceError) else is_spark_gone(error)
    # `told` comes last: what it does not know goes into a file, and an outage is known.
    return (None if gone else outage(pipeline, error)) or defects.as_sluice_error(pipeline.name, error)


def keep_up(
    context: Context,
    pipelines: Sequence[Pipeline],
    every: float,
    on_batch: Callable[[Batch], None],
    on_failure: Callable[[Failure], object],
    stop: threading.Event,
    around: Callable[[Pipeline], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Catches up every so often until it is stopped. A failure is told and tried again the next time."""
    while not stop.is_set():
        began = time.monotonic()
        for failure in catch_up(context, pipelines, on_batch, stop.is_set, around):
            on_failure(failure)
        stop.wait(max(0.0, every - (time.monotonic() - began)))


@contextmanager
def until_interrupted() -> Iterator[threading.Event]:
    """Ctrl-C and a polite kill ask for an end, which comes behind the commit that is under way; the second Ctrl-C does not wait."""
    stop = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set():
            logging.disable(logging.CRITICAL)  # py4j tells each call that is cut off with a traceback
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
