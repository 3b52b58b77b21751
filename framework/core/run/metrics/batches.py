"""Batches that were published."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        yield Sample(1)


METRIC = Metric(doc="Batches that were published.", unit="batch", of=_of)
