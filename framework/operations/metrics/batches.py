"""Batches that were published."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.batches)


METRIC = BatchMetric(doc="Batches that were published.", unit="batch", of=_of)
