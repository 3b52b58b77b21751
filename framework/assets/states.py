"""A sensor that starts no runs: it reports the checks of each table when they change, so that Dagster shows which tables cannot run
or are not fresh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from framework.amounts import counted
from framework.assets import checks, dead_runs
from framework.assets.translator import Assets
from framework.engine.observe.status import statuses
from framework.model import Pipeline, Plan

if TYPE_CHECKING:
    # What `event_log_storage` returns has no public name; at run time nobody needs it.
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

_EVERY = 30  # seconds


def sensor_of(plan: Plan, assets: Assets, pipelines: Sequence[Pipeline], broken: Iterable[AssetCheckResult]) -> SensorDefinition:
    """The sensor. `broken` are the checks of tables whose specs have problems."""
    broken_results = tuple(broken)
    state_checks = (checks.CAN_RUN, checks.FRESH, checks.NEWEST_EVENT)
    expected = [
        spec.key for each in pipelines for spec in checks.specs(assets.keys.table(each), each) if spec.name not in state_checks
    ]

    # With a capital letter, which no pipeline's name has.
    @sensor(
        name=assets.named("Table_states"), minimum_interval_seconds=_EVERY, default_status=DefaultSensorStatus.RUNNING,
        description="Evaluates the checks can_run, fresh and newest_event of each table, and reports those that changed.",
    )  # fmt: skip
    def tell(context: SensorEvaluationContext) -> SensorResult:
        ended = list(dead_runs.end_dead(context.instance))
        current = [
            *broken_results,
            *(result for status in statuses(plan, pipelines) for result in checks.now(assets.keys, status)),
        ]
        changed = [*_changed(context.instance, current), *_unjudged(context.instance, expected)]
        return SensorResult(asset_events=changed, skip_reason=SkipReason(_tick(len(changed), len(ended))))

    return tell


def _tick(changed: int, ended: int) -> str:
    dead = f"; {counted(ended, 'run')} ended, whose process had died" if ended else ""
    return f"{counted(changed, 'check')} changed{dead}"


def _changed(instance: DagsterInstance, results: Sequence[AssetCheckResult]) -> Iterator[AssetCheckEvaluation]:
    """The evaluations that differ from the latest ones: Dagster keeps every event."""
    evaluations = [_evaluation(each) for each in results]
    latest = _latest(instance, [each.asset_check_key for each in evaluations])
    for each in evaluations:
        record = latest.get(each.asset_check_key)
        if record and _under_way(instance, record):
            continue  # the run reports them
        last = record.evaluation if record and record.status in checks.JUDGED else None
        if last is None or _comparable(last) != _comparable(each):
            yield each


def _unjudged(instance: DagsterInstance, keys: Sequence[AssetCheckKey]) -> Iterator[AssetCheckEvaluation]:
    """The last evaluations of checks that a run planned but did not evaluate: it died or was canceled."""
    for key, record in _latest(instance, keys).items():
        if record.status not in checks.JUDGED and not _under_way(instance, record):
            yield from checks.as_last_judged(instance, [key])


def _latest(instance: DagsterInstance, keys: Sequence[AssetCheckKey]) -> Mapping[AssetCheckKey, AssetCheckExecutionRecord]:
    return instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)


def _under_way(instance: DagsterInstance, record: AssetCheckExecutionRecord) -> bool:
    if record.status in checks.JUDGED:
        return False
    run = instance.get_run_by_id(record.run_id)
    return run is not None and not run.is_finished


def _evaluation(result: AssetCheckResult) -> AssetCheckEvaluation:
    assert result.asset_key is not None
    assert result.check_name is not None
    return AssetCheckEvaluation(
        asset_key=result.asset_key, check_name=result.check_name, passed=result.passed, metadata=result.metadata or {},
        severity=result.severity, description=result.description,
    )  # fmt: skip


def _comparable(each: AssetCheckEvaluation) -> tuple[object, ...]:
    because = each.metadata.get("because")
    return each.passed, not each.passed and each.severity, because.value if because else None
