"""Expectations and the age of the data as Dagster's asset checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from framework.assets.described import table_key
from framework.engine.batch import Batch
from framework.errors import SluiceError, Unexpected
from framework.plan.model import Expectation, Pipeline
from framework.plan.text import duration

NEWEST = "newest_event"


def specs(pipeline: Pipeline) -> list[AssetCheckSpec]:
    key = table_key(pipeline)
    made = [
        AssetCheckSpec(name, asset=key, description=f"{each.says}; else: {each.otherwise} ({each.where})")
        for name, each in _named(pipeline)
    ]
    if pipeline.fresh_within:
        says = f"The newest event in the table is at most {duration(pipeline.fresh_within)} old."
        made.append(AssetCheckSpec(NEWEST, asset=key, description=says))
    return made


def results(
    pipeline: Pipeline, batches: Sequence[Batch], bad: Mapping[str, int], moment: datetime | None
) -> Iterator[AssetCheckResult]:
    """After a run; `bad` counts its bad rows by what is said of them, the moment is that of the newest event."""
    warned = [warning for batch in batches for warning in batch.warnings]
    for name, each in _named(pipeline):
        failing = sum(count for said, count in warned if said == each.name)
        if each.otherwise == "quarantine":
            failing = bad.get(each.message, 0)
        yield AssetCheckResult(
            passed=not failing, asset_key=table_key(pipeline), check_name=name, severity=AssetCheckSeverity.WARN,
            metadata={"failing_rows": failing, "rows": sum(batch.rows for batch in batches)},
        )  # fmt: skip
    yield from age(pipeline, moment)


def stopped(pipeline: Pipeline, error: SluiceError) -> Iterator[AssetCheckResult]:
    """The expectation that stopped a run."""
    for name, each in _named(pipeline):
        if isinstance(error, Unexpected) and each.name == error.expectation:
            yield AssetCheckResult(
                passed=False, asset_key=table_key(pipeline), check_name=name, severity=AssetCheckSeverity.ERROR,
                description=str(error),
            )  # fmt: skip


def age(pipeline: Pipeline, moment: datetime | None) -> Iterator[AssetCheckResult]:
    if not pipeline.fresh_within:
        return
    seconds = (datetime.now(timezone.utc) - moment).total_seconds() if moment else None
    late = seconds is None or seconds > pipeline.fresh_within
    warn = late or (pipeline.warn_after is not None and seconds is not None and seconds > pipeline.warn_after)
    yield AssetCheckResult(
        passed=not warn, asset_key=table_key(pipeline), check_name=NEWEST,
        severity=AssetCheckSeverity.ERROR if late else AssetCheckSeverity.WARN,
        metadata={"seconds": round(seconds, 1), "newest": str(moment)} if seconds is not None else {},
        description=None if moment else "the table has no event yet",
    )  # fmt: skip


def _named(pipeline: Pipeline) -> Iterator[tuple[str, Expectation]]:
    """Dagster's names for expectations: letters, digits and _."""
    taken: set[str] = {NEWEST}
    for each in pipeline.expected:
        plain = re.sub(r"\W+", "_", each.name).strip("_").lower()[:80] or "expectation"
        number = 2
        name = plain
        while name in taken:
            name, number = f"{plain}_{number}", number + 1
        taken.add(name)
        yield name, each
