"""How old the last commit of a table may be while messages wait."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if status.pipeline.fresh_within:
        yield Sample(status.pipeline.fresh_within)


METRIC = TableMetric(doc="How old the last commit of a table may be while messages wait.", unit="second", of=_of)
