"""The seconds of batches, by what was done."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        for phase, seconds in event.batch.phases:
            yield Sample(seconds, phase)


METRIC = Metric(
    doc="The seconds of batches, by what was done.", unit="second", of=_of, place=7, label="phase", dagster="seconds_{label}"
)
