"""Rows that were kept out of a table because they are bad."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.rules.work import Work
from framework.operations.metrics import AlertRule, BatchMetric, Sample


def _of(work: Work) -> Iterator[Sample]:
    for code, count in work.bad.items():
        yield Sample(count, code)


def _words(work: Work) -> Iterator[str]:
    if bad := sum(work.bad.values()):
        yield f"{bad:,} bad"


# A series that begins with the first bad row of its code has no increase; that a table itself is new to Prometheus means nothing.
_NOW, _BEFORE = (f"max by (pipeline, table, code) ({{metric}}{offset})" for offset in ("", " offset 10m"))
_NEW = (
    "max by (pipeline, table, code) (increase({metric}[10m])) > 0"
    f" or ({_NOW} unless {_BEFORE}) and on (pipeline, table) max by (pipeline, table) (sluice_batches_total offset 10m)"
)
METRIC = BatchMetric(
    doc="Rows that were kept out of a table because they are bad.",
    unit="row",
    of=_of,
    words=_words,
    label="code",
    place=3,
    alerts=(
        AlertRule(
            name="SluiceBadRows",
            when=_NEW,
            severity="warning",
            says="{{ $labels.table }} has new bad rows, {{ $labels.code }}. `sluice bad-rows {{ $labels.pipeline }}` shows them.",
        ),
    ),
)
