"""The failures of runs: errors with codes of their own, as events, and raised again for those who want that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from framework.base.errors import SluiceError, SparkEnded
from framework.core.context.outage import outage
from framework.core.run.events import Ended, Event, Failed, LeftOut
from framework.core.spark import defects
from framework.core.spark.causes import is_spark_gone
from framework.plan import Pipeline


def named(pipeline: Pipeline, error: Exception) -> SluiceError:
    """Returns the error that stopped a run of the pipeline, with a code."""
    is_gone = isinstance(error, SparkEnded) if isinstance(error, SluiceError) else is_spark_gone(error)
    # `as_sluice_error` comes last: it writes an unexpected error into a file, and an outage is expected.
    named_error = (None if is_gone else outage(pipeline, error)) or defects.as_sluice_error(pipeline.name, error)
    if named_error is not error:
        named_error.__cause__ = error
    return named_error


def ended(pipeline: Pipeline, events: Iterable[Event]) -> Iterator[Event]:
    """The events of a run; an error is the event Failed, and Ended is the last one."""
    try:
        yield from events
    except Exception as error:
        yield Failed(pipeline, named(pipeline, error))
    yield Ended(pipeline)


def raising(events: Iterable[Event]) -> Iterator[Event]:
    """The events of one run. Raises at its end what stopped it, or why it was left out; a follower's failure stops nothing."""
    error: SluiceError | None = None
    for event in events:
        if isinstance(event, Failed) and event.follower is None:
            error = event.error
        elif isinstance(event, LeftOut):
            error = event.reason
        yield event
    if error is not None:
        raise error
