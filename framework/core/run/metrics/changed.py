"""Rows with a key that a batch added, changed, deleted or ended."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        for change, count in event.batch.changed.words.items() if event.batch.changed else ():
            yield Sample(count, change, f"{count:,} {change}" if count else "")


METRIC = Metric(
    doc="Rows with a key that a batch added, changed, deleted or ended.",
    unit="row",
    of=_of,
    place=2,
    label="change",
    dagster="{label}",
)
