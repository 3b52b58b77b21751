"""Messages that still waited behind a batch: the smallest metric."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        yield Sample(event.batch.waiting, words=f"{event.batch.waiting:,} stragglers")


METRIC = Metric(doc="Messages that still waited behind a batch.", unit="message", of=_of, place=9, lineage="size")
