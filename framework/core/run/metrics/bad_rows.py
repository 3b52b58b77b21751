"""Rows that were kept out of a table because they are bad."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        yield Sample(event.batch.bad, words=f"{event.batch.bad:,} bad" if event.batch.bad else "")


METRIC = Metric(doc="Rows that were kept out of a table because they are bad.", unit="row", of=_of, place=3)
