"""Bytes of Java's memory that are used."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, StreamMetric, StreamNow


def _of(stream: StreamNow) -> Iterator[Sample]:
    if stream.memory is not None:
        yield Sample(stream.memory[0])


METRIC = StreamMetric(
    doc="Bytes of Java's memory that are used.",
    unit="byte",
    of=_of,
    alerts=(
        AlertRule(
            name="SluiceStreamMemory",
            when="{metric} / sluice_stream_heap_limit_bytes > 0.95",
            lasts="15m",
            severity="warning",
            says="Java at {{ $labels.instance }} uses nearly all of its memory. `memory` of the document `engine` gives it more.",
        ),
    ),
)
