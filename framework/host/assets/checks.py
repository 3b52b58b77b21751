"""A table's checks in Dagster: its expectations, whether it can run, how fresh it is.

Only a run that published rows evaluates an expectation. Any other run, and a failed one, reports the last result again: otherwise
Dagster would show the check as skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec, AssetKey

from framework.base import hints, iso_times
from framework.base.errors import SluiceError, Unexpected
from framework.core.publish.batch import Batch
from framework.host.assets.keys import AssetKeys
from framework.operations.observe.status import Status
from framework.plan import Expectation, Pipeline, SetExpectation
from framework.plan.text import duration

CAN_RUN = "can_run"
FRESH = "fresh"
ALSO = "also"
NEWEST_EVENT = "newest_event"
ALERTS = "alerts"  # which the sensor of alerts evaluates
OF_STATES = (CAN_RUN, FRESH, ALSO, NEWEST_EVENT)  # which need no rows
STATE = (*OF_STATES, ALERTS)  # all that are no expectations


def specs(key: AssetKey, pipeline: Pipeline) -> list[AssetCheckSpec]:
    check_specs = [can_run(key)]
    for name, expectation in _named(pipeline):
        says = f"{expectation.says}; else: {expectation.otherwise} ({expectation.where})"
        check_specs.append(AssetCheckSpec(name, asset=key, description=says, blocking=expectation.otherwise == "stop"))
    if pipeline.also:
        says = f"All rows of the table are in the {' and the '.join(follower.title for follower in pipeline.also)}."
        check_specs.append(AssetCheckSpec(ALSO, asset=key, description=says))
    if pipeline.fresh_within:
        within = duration(pipeline.fresh_within)
        says = f"All messages are in the table, or its last batch is at most {within} old."
        check_specs.append(AssetCheckSpec(FRESH, asset=key, description=says))
        if _has_newest_event(pipeline):
            says = f"The newest event in the table is at most {within} old; messages of its topics always come."
            check_specs.append(AssetCheckSpec(NEWEST_EVENT, asset=key, description=says))
    if pipeline.alerts:
        says = f"No alert of the specs holds for the table: {', '.join(pipeline.alerts)}."
        check_specs.append(AssetCheckSpec(ALERTS, asset=key, description=says))
    return check_specs


def can_run(key: AssetKey) -> AssetCheckSpec:
    says = "The spec has no problems, the pipeline is not paused, and no error needs a person."
    return AssetCheckSpec(CAN_RUN, asset=key, description=says)


def results(keys: AssetKeys, pipeline: Pipeline, batches: Sequence[Batch], bad: Mapping[str, int]) -> Iterator[AssetCheckResult]:
    """The expectations, evaluated on the rows of a run; `bad` counts its bad rows by their message."""
    for name, expectation in _named(pipeline):
        unmet = [warning for batch in batches for warning in batch.warnings if warning.name == expectation.name]
        failing = sum(warning.rows for warning in unmet)
        if isinstance(expectation, Expectation) and expectation.otherwise == "quarantine":
            failing = bad.get(expectation.message, 0)
        samples = [warning.sample for warning in unmet if warning.sample]
        yield AssetCheckResult(
            passed=not failing and not unmet, asset_key=keys.table(pipeline), check_name=name, severity=AssetCheckSeverity.WARN,
            description=next((warning.says for warning in unmet if warning.says), None),
            metadata={
                "failing_rows": failing, "rows": sum(batch.rows for batch in batches), **({"where": samples[0]} if samples else {}),
            },
        )  # fmt: skip


def stopped(keys: AssetKeys, pipeline: Pipeline, error: SluiceError) -> Iterator[AssetCheckResult]:
    """The expectation that stopped a run."""
    for name, expectation in _named(pipeline):
        if isinstance(error, Unexpected) and expectation.name == error.expectation:
            yield AssetCheckResult(
                passed=False, asset_key=keys.table(pipeline), check_name=name, severity=AssetCheckSeverity.ERROR,
                description=hints.of_environment(str(error), pipeline.environment),
            )  # fmt: skip


def state_results(keys: AssetKeys, status: Status) -> Iterator[AssetCheckResult]:
    """The checks that need no rows, so that they can be evaluated at any time. Dagster shows descriptions as Markdown: an empty line
    separates sentences."""
    key = keys.table(status.pipeline)
    yield _can_run(key, status)
    if status.followers:
        yield _also(key, status)
    if status.pipeline.fresh_within:
        if status.fresh is not None:
            yield _fresh(key, status)
        if _has_newest_event(status.pipeline):
            yield _newest_event(key, status)


def _can_run(key: AssetKey, status: Status) -> AssetCheckResult:
    lines = [f"{reason.code}: {reason.message}\n\n{reason.do}" for reason in status.reasons]
    if status.paused:
        lines.insert(0, f"paused since {iso_times.text(status.paused)}\n\n`sluice resume {status.pipeline.name}` resumes it")
    mild = bool(status.paused) or all(reason.unanswered for reason in status.reasons)
    says = hints.of_environment("\n\n".join(lines), status.pipeline.environment)
    return AssetCheckResult(
        passed=not lines, asset_key=key, check_name=CAN_RUN, description=says or None,
        severity=AssetCheckSeverity.WARN if mild else AssetCheckSeverity.ERROR,
        metadata={"state": status.state, "because": ", ".join(reason.code for reason in status.reasons) or "nothing"},
    )  # fmt: skip


def _also(key: AssetKey, status: Status) -> AssetCheckResult:
    """A warning: the table itself is right."""
    late_states = [state for state in status.followers if state.rows or state.failed]
    lines = [f"{state.follower.title}: {state.failed.message if state.failed else state.words}" for state in late_states]
    return AssetCheckResult(
        passed=not late_states, asset_key=key, check_name=ALSO, severity=AssetCheckSeverity.WARN,
        description="\n\n".join(lines) or None, metadata={state.follower.title: state.rows for state in status.followers},
    )  # fmt: skip


def _fresh(key: AssetKey, status: Status) -> AssetCheckResult:
    pipeline, lag = status.pipeline, status.progress.lag
    seconds = status.age(status.progress.committed)
    warn = lag != 0 and pipeline.warn_after is not None and seconds is not None and seconds > pipeline.warn_after
    waits = lag != 0 or not status.fresh
    waiting = "the number of waiting messages is unknown" if lag is None else f"{lag:,} messages wait"
    if lag == 0 and pipeline.read_tables:
        waiting = f"messages wait before the table {pipeline.source_name}"
    last_time = iso_times.text(status.progress.committed) if status.progress.committed else "no time yet"
    return AssetCheckResult(
        passed=bool(status.fresh) and not warn, asset_key=key, check_name=FRESH,
        severity=AssetCheckSeverity.WARN if status.fresh else AssetCheckSeverity.ERROR,
        description=f"{waiting}; the last batch was at {last_time}" if waits else "all messages are in the table",
        metadata={} if lag is None else {"lag_messages": lag},
    )  # fmt: skip


def _has_newest_event(pipeline: Pipeline) -> bool:
    """Whether an old newest event is a fault: in a quiet topic it is none."""
    return pipeline.is_steady and pipeline.event_time is not None


def _newest_event(key: AssetKey, status: Status) -> AssetCheckResult:
    """A warning: the table has all messages that came."""
    pipeline, moment = status.pipeline, status.newest_event
    seconds = (status.time - moment).total_seconds() if moment else None
    longest = pipeline.warn_after or pipeline.fresh_within or 0
    return AssetCheckResult(
        passed=seconds is not None and seconds <= longest, asset_key=key, check_name=NEWEST_EVENT, severity=AssetCheckSeverity.WARN,
        metadata={"seconds": round(seconds, 1), "newest": iso_times.text(moment)} if moment is not None and seconds is not None else {},
        description=None if moment else "the table has no event yet",
    )  # fmt: skip


def _named(pipeline: Pipeline) -> Iterator[tuple[str, Expectation | SetExpectation]]:
    """The expectations with their names in Dagster: letters, digits and _."""
    used_names: set[str] = set(STATE)
    all_expectations: list[Expectation | SetExpectation] = [*pipeline.expected, *pipeline.sets]
    for expectation in all_expectations:
        plain_name = re.sub(r"[^A-Za-z0-9_]+", "_", expectation.name).strip("_").lower()[:80] or "expectation"
        number = 2
        name = plain_name
        while name in used_names:
            name, number = f"{plain_name}_{number}", number + 1
        used_names.add(name)
        yield name, expectation
