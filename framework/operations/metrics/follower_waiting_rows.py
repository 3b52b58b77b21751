"""Rows, or commits, that a follower of a table has not shown yet."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.metrics import Sample, TableMetric
from framework.operations.observe.status import Status


def _of(status: Status) -> Iterator[Sample]:
    yield from (Sample(follower.rows, follower.follower.title) for follower in status.followers)


METRIC = TableMetric(
    doc="Rows, or commits, that a follower of a table has not shown yet.",
    unit="row",
    of=_of,
    label="follower",
    dagster="waiting_for_{label}",
)
