"""Runs of pipelines, and what a test reads of their events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.publish.batch import Batch
from framework.core.run.events import BatchDone, Event, Failed, LeftOut
from framework.core.run.failures import raising
from framework.core.run.run import never, run_all
from framework.plan import Pipeline


def published(events: Iterable[Event]) -> list[Batch]:
    """The batches of a run. Raises what stopped it."""
    return [event.batch for event in raising(events) if isinstance(event, BatchDone)]


def errors(
    context: Context,
    pipelines: Sequence[Pipeline],
    on_batch: Callable[[Batch], object] = lambda _: None,
    stopped: Callable[[], bool] = never,
) -> list[SluiceError]:
    """Runs the pipelines, and returns the errors of those that failed or were left out, and of their followers."""
    return list(_errors(context, pipelines, on_batch, stopped))


def _errors(
    context: Context, pipelines: Sequence[Pipeline], on_batch: Callable[[Batch], object], stopped: Callable[[], bool]
) -> Iterator[SluiceError]:
    for event in run_all(context, pipelines, stopped):
        match event:
            case BatchDone(_, batch):
                on_batch(batch)
            case Failed(_, error):
                yield error
            case LeftOut(_, reason):
                yield reason
