"""Rows that were added to a table or changed there."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.amounts import counted
from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Metric, Sample


def _of(event: Event) -> Iterator[Sample]:
    if isinstance(event, BatchDone):
        yield Sample(event.batch.rows, words=counted(event.batch.rows, "row"))


METRIC = Metric(doc="Rows that were added to a table or changed there.", unit="row", of=_of, place=1, lineage="rowCount")
