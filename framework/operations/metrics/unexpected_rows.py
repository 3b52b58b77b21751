"""Rows that are not as the spec expects."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    for expectation, count in work.unmet.items():
        yield Sample(count, expectation)


METRIC = BatchMetric(
    doc="Rows that are not as the spec expects.", unit="row", of=_of, label="expectation", dagster="unmet_{label}"
)
