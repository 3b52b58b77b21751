"""Seconds of batches, by what was done. In sums of a table, what follows a commit is missing."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    for phase, seconds in work.seconds.items():
        yield Sample(seconds, phase)


METRIC = BatchMetric(
    doc="Seconds of batches, by what was done. In sums of a table, what follows a commit is missing.",
    unit="second",
    of=_of,
    label="phase",
    dagster="seconds_{label}",
)
