"""Whether a table is as fresh as `fresh_within` says: 1, or 0 where it is late."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    if status.fresh is not None and status.is_late is not None:
        yield Sample(float(status.fresh))


METRIC = TableMetric(
    doc="Whether a table is as fresh as `fresh_within` says: 1, or 0 where it is late.",
    of=_of,
    alerts=(
        AlertRule(
            name="SluiceTableLate",
            when="{metric} == 0",
            lasts="1m",
            severity="critical",
            says="{{ $labels.table }} is late: messages wait, and its last commit is older than `fresh_within`.",
        ),
    ),
)
