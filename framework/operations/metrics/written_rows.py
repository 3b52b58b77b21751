"""Rows that were added to a table or changed there."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.amounts import counted
from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.rows)


def _words(work: Work) -> Iterator[str]:
    yield counted(work.rows, "row")


METRIC = BatchMetric(
    doc="Rows that were added to a table or changed there.",
    unit="row",
    of=_of,
    words=_words,
    place=1,
    dagster="rows",
    lineage="rowCount",
)
