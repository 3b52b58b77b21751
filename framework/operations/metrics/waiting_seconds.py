"""How long the oldest message has waited that no batch has read yet, in each partition; `/metrics` alone knows it."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    yield from (Sample(seconds, partition) for partition, seconds in status.waited.items())


METRIC = TableMetric(
    doc="How long the oldest message has waited that no batch has read yet, in each partition; `/metrics` alone knows it.",
    unit="second",
    of=_of,
    label="source",
    by_looks=True,
)
