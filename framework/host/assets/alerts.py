"""A sensor that judges the alerts of the specs, tells who is to be told, and shows on each table whether one holds.

*Guarantee* An incident is told once, and that it is over once, also where `sluice stream` or `sluice alerts` judges beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from framework.base import hints
from framework.host.assets import check_records, checks, default_status, states
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.translator import Assets
from framework.operations.alerts import judge
from framework.operations.alerts.judge import Judgement
from framework.plan import Pipeline, Plan

_EVERY = 30  # seconds


def sensor_of(plan: Plan, assets: Assets, pipelines: Sequence[Pipeline], status: DefaultStatus) -> SensorDefinition:
    """The sensor of all alerts; the checks are those of `pipelines`."""

    @sensor(
        name=assets.named("Alerts"), minimum_interval_seconds=_EVERY, default_status=default_status.of_sensors(status),
        description=f"Judges the alerts of the specs, tells who is to be told, and evaluates the check {checks.ALERTS} of each table.",
    )  # fmt: skip
    def tell(context: SensorEvaluationContext) -> SensorResult:
        judgement = judge.judge(plan)
        for line in judge.lines(judgement):
            context.log.info(hints.of_environment(line, plan.environment))
        results = [check_records.evaluation(result) for result in _results(assets, pipelines, judgement)]
        changed = list(states.changed(context.instance, results))
        return SensorResult(asset_events=changed, skip_reason=SkipReason(_tick(judgement)))

    return tell


def _results(assets: Assets, pipelines: Sequence[Pipeline], judgement: Judgement) -> Iterator[AssetCheckResult]:
    for pipeline in pipelines:
        of_table = [judged for judged in judgement.judged if judged.pipeline == pipeline.name]
        holding = [judged for judged in of_table if judged.holds]
        if holding or any(not judged.unknown for judged in of_table):
            yield AssetCheckResult(
                passed=not holding, asset_key=assets.keys.table(pipeline), check_name=checks.ALERTS, severity=AssetCheckSeverity.WARN,
                description="\n\n".join(f"{judged.alert.name}: {judged.why}" for judged in holding) or None,
                metadata={"because": ", ".join(judged.alert.name for judged in holding) or "nothing"},
            )  # fmt: skip


def _tick(judgement: Judgement) -> str:
    if judgement.elsewhere:
        return "another process judges the alerts at this moment"
    held = [f"{judged.alert.name} on {judged.table}" for judged in judgement.judged if judged.holds]
    return "; ".join((f"{', '.join(held) or 'no alert'} {'hold' if len(held) > 1 else 'holds'}", *judge.lines(judgement)))
