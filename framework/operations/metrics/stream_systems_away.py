"""Systems that do not answer a stream."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, StreamMetric, StreamNow


def _of(stream: StreamNow) -> Iterator[Sample]:
    yield Sample(len(stream.health.away))


METRIC = StreamMetric(
    doc="Systems that do not answer a stream.",
    unit="system",
    of=_of,
    alerts=(
        AlertRule(
            name="SluiceSystemAway",
            when="{metric} > 0",
            lasts="5m",
            severity="critical",
            says="A system does not answer the stream at {{ $labels.instance }}. Its log and /readyz name it.",
        ),
    ),
)
