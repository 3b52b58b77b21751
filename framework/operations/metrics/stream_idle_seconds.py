"""How long ago a stream looked for news."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, StreamMetric, StreamNow


def _of(stream: StreamNow) -> Iterator[Sample]:
    yield Sample(stream.health.idle)


METRIC = StreamMetric(
    doc="How long ago a stream looked for news.",
    unit="second",
    of=_of,
    alerts=(
        AlertRule(
            name="SluiceStreamHangs",
            when="{metric} > 30",
            lasts="1m",
            severity="critical",
            says="The stream at {{ $labels.instance }} does not turn. Its service manager should begin it again.",
        ),
    ),
)
