"""Batches that were staged again, since another commit to the table came before them."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.repeats)


METRIC = BatchMetric(
    doc="Batches that were staged again, since another commit to the table came before them.", unit="batch", of=_of
)
