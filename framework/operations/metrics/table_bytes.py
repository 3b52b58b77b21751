"""Bytes of the files of a table, without older versions of it."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if not status.progress.catalog_away:
        yield Sample(status.progress.bytes)


METRIC = TableMetric(doc="Bytes of the files of a table, without older versions of it.", unit="byte", of=_of, dagster="bytes")
