"""Bytes of the files that batches added to a table."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.bytes)


METRIC = BatchMetric(doc="Bytes of the files that batches added to a table.", unit="byte", of=_of)
