"""Schemas that a table has had, one for each change of its columns, and the first."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if (table := status.progress.table_metadata) is not None:
        yield Sample(len(table.document["schemas"]))


METRIC = TableMetric(
    doc="Schemas that a table has had, one for each change of its columns, and the first.", unit="schema", of=_of
)
