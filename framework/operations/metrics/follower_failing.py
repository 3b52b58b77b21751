"""Whether a follower of a table fails: 1, or 0."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    yield from (Sample(float(follower.failed is not None), follower.follower.title) for follower in status.followers)


METRIC = TableMetric(
    doc="Whether a follower of a table fails: 1, or 0.",
    of=_of,
    label="follower",
    dagster="failing_{label}",
    alerts=(
        AlertRule(
            name="SluiceFollowerFailing",
            when="{metric} == 1",
            lasts="5m",
            severity="warning",
            says="{{ $labels.follower }} does not get the rows of {{ $labels.table }}.",
        ),
    ),
)
