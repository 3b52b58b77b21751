"""Bytes of the keys and values of messages that were read."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    yield Sample(work.read_bytes)


METRIC = BatchMetric(doc="Bytes of the keys and values of messages that were read.", unit="byte", of=_of)
