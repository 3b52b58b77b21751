"""Rows that the spec does not want."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.filtered)


def _words(work: Work) -> Iterator[str]:
    if work.filtered:
        yield f"{work.filtered:,} filtered"


METRIC = BatchMetric(doc="Rows that the spec does not want.", unit="row", of=_of, words=_words, place=4, dagster="filtered")
