"""The seconds of batches, without the start of Spark."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        yield Sample(event.batch.seconds)


METRIC = Metric(doc="The seconds of batches, without the start of Spark.", unit="second", of=_of, place=6)
