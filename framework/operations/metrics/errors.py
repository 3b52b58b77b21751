"""The codes of what keeps a pipeline from its work; none where nothing does."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    yield from (Sample(1, code) for code in sorted({reason.code for reason in status.reasons}))


METRIC = TableMetric(
    doc="The codes of what keeps a pipeline from its work; none where nothing does.",
    of=_of,
    label="code",
    dagster="error_{label}",
)
