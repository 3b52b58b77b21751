"""Files with rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if not status.progress.catalog_away:
        yield Sample(status.progress.files)


METRIC = TableMetric(doc="Files with rows of a table.", unit="file", of=_of, dagster="files")
