"""Objects that commits of batches put into the store: files with rows, lists of files, and metadata."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.objects)


METRIC = BatchMetric(
    doc="Objects that commits of batches put into the store: files with rows, lists of files, and metadata.",
    unit="object",
    of=_of,
)
