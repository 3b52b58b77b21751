"""Rows that the spec does not want."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        yield Sample(event.batch.filtered, words=f"{event.batch.filtered:,} filtered" if event.batch.filtered else "")


METRIC = Metric(doc="Rows that the spec does not want.", unit="row", of=_of, place=4)
