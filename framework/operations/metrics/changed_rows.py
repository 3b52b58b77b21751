"""Rows with a key that a batch added, changed, deleted or ended."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    for change, count in work.changed.items():
        yield Sample(count, change)


def _words(work: Work) -> Iterator[str]:
    yield from (f"{count:,} {change}" for change, count in work.changed.items() if count)


METRIC = BatchMetric(
    doc="Rows with a key that a batch added, changed, deleted or ended.",
    unit="row",
    of=_of,
    words=_words,
    label="change",
    place=2,
    dagster="{label}",
)
