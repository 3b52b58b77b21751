"""Messages that no batch has read yet, in each partition; rows, where another table is read."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if status.progress.offsets:
        yield from (Sample(offsets.waiting, offsets.partition) for offsets in status.progress.offsets)
    elif status.progress.lag is not None:
        yield Sample(status.progress.lag, status.pipeline.source_name)


METRIC = TableMetric(
    doc="Messages that no batch has read yet, in each partition; rows, where another table is read.",
    unit="message",
    of=_of,
    label="source",
    dagster="lag_messages",
)
