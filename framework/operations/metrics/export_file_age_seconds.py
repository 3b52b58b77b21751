"""How old the last file of an export is."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    for state in status.exports:
        if (age := status.age(state.written)) is not None:
            yield Sample(age, state.export.name)


METRIC = TableMetric(
    doc="How old the last file of an export is.", unit="second", of=_of, label="export", dagster="age_of_{label}"
)
