"""Rows that are marked as deleted and still are in files."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.iceberg import metadata
from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if (table := status.progress.table_metadata) is not None:
        yield Sample(int(metadata.summary(table.main).get("total-position-deletes", 0)))


METRIC = TableMetric(doc="Rows that are marked as deleted and still are in files.", unit="row", of=_of)
