"""How long a pipeline has been paused."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if (age := status.age(status.paused)) is not None:
        yield Sample(age)


METRIC = TableMetric(
    doc="How long a pipeline has been paused.",
    unit="second",
    of=_of,
    alerts=(
        AlertRule(
            name="SluicePausedForADay",
            when="{metric} > 86400",
            severity="warning",
            says="{{ $labels.pipeline }} has been paused for a day. `sluice resume {{ $labels.pipeline }}` resumes it.",
        ),
    ),
)
