"""Whether a stream can do all that it should: 1, or 0."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, StreamMetric, StreamNow


def _of(stream: StreamNow) -> Iterator[Sample]:
    yield Sample(float(stream.health.is_ready))


METRIC = StreamMetric(doc="Whether a stream can do all that it should: 1, or 0.", of=_of)
