"""Rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if not status.progress.catalog_away:
        yield Sample(status.progress.rows)


METRIC = TableMetric(doc="Rows of a table.", unit="row", of=_of, dagster="dagster/row_count")
