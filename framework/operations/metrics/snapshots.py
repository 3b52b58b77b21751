"""Versions that a table keeps."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if (table := status.progress.table_metadata) is not None:
        yield Sample(len(table.snapshots))


METRIC = TableMetric(doc="Versions that a table keeps.", unit="snapshot", of=_of)
