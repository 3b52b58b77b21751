"""Seconds of batches, without the start of Spark."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import BOUNDS, Work
from framework.operations.metrics import BatchHistogram, Sample


def _of(work: Work) -> Iterator[Sample]:
    for bound, count in work.lasted.items():
        yield Sample(count, bound)


METRIC = BatchHistogram(
    doc="Seconds of batches, without the start of Spark. In sums of a table, what follows a commit is missing.",
    unit="second",
    of=_of,
    total=lambda work: work.elapsed,
    bounds=BOUNDS,
    label="bound",
    dagster="seconds",
)
