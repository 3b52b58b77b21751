"""For how long a file of an export with a schedule has been due, or 0."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import AlertRule, Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    for state in status.exports:
        if (late := state.late(status.time)) is not None:
            yield Sample(late, state.export.name)


METRIC = TableMetric(
    doc="For how long a file of an export with a schedule has been due, or 0.",
    unit="second",
    of=_of,
    label="export",
    dagster="late_{label}",
    alerts=(
        AlertRule(
            name="SluiceExportLate",
            when="{metric} > 3600",
            severity="warning",
            says="{{ $labels.export }} of {{ $labels.table }} has written no file since it was due.",
        ),
    ),
)
