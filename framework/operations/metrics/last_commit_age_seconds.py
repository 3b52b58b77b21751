"""How old the last commit of a table is."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if (age := status.age(status.progress.committed)) is not None:
        yield Sample(age)


METRIC = TableMetric(doc="How old the last commit of a table is.", unit="second", of=_of)
