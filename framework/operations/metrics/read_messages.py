"""Messages, or rows of another table, that were read."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.read)


METRIC = BatchMetric(doc="Messages, or rows of another table, that were read.", unit="message", of=_of)
