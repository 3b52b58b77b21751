"""Files that batches added to a table, those with marks of deleted rows among them."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.files)


METRIC = BatchMetric(doc="Files that batches added to a table, those with marks of deleted rows among them.", unit="file", of=_of)
