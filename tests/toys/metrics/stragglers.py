"""Messages that gave no row: the smallest metric."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.read - work.rows)


def _words(work: Work) -> Iterator[str]:
    yield f"{work.read - work.rows:,} stragglers"


METRIC = BatchMetric(doc="Messages that gave no row.", unit="message", of=_of, words=_words, place=9, lineage="size")
