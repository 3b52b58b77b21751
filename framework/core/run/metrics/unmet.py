"""Rows that are not as the spec expects."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        for unmet in event.batch.warnings:
            yield Sample(unmet.rows, unmet.name, unmet.words)


METRIC = Metric(
    doc="Rows that are not as the spec expects.", unit="row", of=_of, place=5, label="expectation", dagster="unmet_{label}"
)
