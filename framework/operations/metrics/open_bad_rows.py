"""Bad rows that nobody has corrected or given up yet."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if not status.progress.catalog_away:
        yield Sample(status.progress.bad_rows)


METRIC = TableMetric(doc="Bad rows that nobody has corrected or given up yet.", unit="row", of=_of)
