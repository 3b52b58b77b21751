"""Bytes of Java's memory that may be used."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, StreamMetric, StreamNow


def _of(stream: StreamNow) -> Iterator[Sample]:
    if stream.memory is not None:
        yield Sample(stream.memory[1])


METRIC = StreamMetric(doc="Bytes of Java's memory that may be used.", unit="byte", of=_of)
