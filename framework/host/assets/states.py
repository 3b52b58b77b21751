"""A sensor that starts no runs: it reports the checks of each table when they change, so that Dagster shows which tables cannot run
or are not fresh, and observes the topics and what other programs commit.

*Guarantee* A check is reported while a run of its table waits or works, too: a queue that does not move hides no late table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    DagsterInstance,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from framework.base.amounts import counted
from framework.base.clock import utc_now
from framework.host.assets import check_records, checks, dead_runs, default_status, observed, other_commits, streamed
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.translator import Assets
from framework.operations.observe.status import statuses
from framework.plan import Pipeline, Plan

_EVERY = 30  # seconds


def sensor_of(
    plan: Plan, assets: Assets, pipelines: Sequence[Pipeline], broken: Iterable[AssetCheckResult], status: DefaultStatus
) -> SensorDefinition:
    """The sensor of all tables. `broken` are the checks of tables whose specs have problems."""
    broken_results = [check_records.evaluation(result) for result in broken]
    keys = [spec.key for pipeline in pipelines for spec in checks.specs(assets.keys.table(pipeline), pipeline)]
    expectations = [key for key in keys if key.name not in checks.STATE]

    # With a capital letter, which no pipeline's name has.
    @sensor(
        name=assets.named("Table_states"), minimum_interval_seconds=_EVERY, default_status=default_status.of_sensors(status),
        description=f"Evaluates the checks {', '.join(checks.OF_STATES)} of each table, and reports those that changed.",
    )  # fmt: skip
    def tell(context: SensorEvaluationContext) -> SensorResult:
        instance = context.instance
        ended_runs = list(dead_runs.end_dead(instance))
        earlier_records = check_records.latest(instance, keys)
        table_statuses = list(statuses(plan, pipelines, clock=utc_now))
        streamed_keys = streamed.materialize(instance, assets.keys, table_statuses)
        evaluations = [
            check_records.of_materialization(
                check_records.evaluation(result), streamed_keys.get(assets.keys.table(status.pipeline))
            )
            for status in table_statuses
            for result in checks.state_results(assets.keys, status)
        ]
        judged_keys = check_records.judged_since(instance, keys, earlier_records)  # by runs, from later states of their tables
        current_evaluations = [
            *broken_results,
            *(evaluation for evaluation in evaluations if evaluation.asset_check_key not in judged_keys),
        ]
        changed_evaluations = [
            *changed(instance, current_evaluations),
            *_unjudged(instance, expectations),
            *check_records.of_others(instance, expectations, streamed_keys),
        ]
        observed.observe(instance, assets.keys, table_statuses)
        cursor = other_commits.observe(instance, assets.keys, table_statuses, context.cursor)
        return SensorResult(
            asset_events=changed_evaluations,
            cursor=cursor,
            skip_reason=SkipReason(_tick(len(changed_evaluations), len(ended_runs))),
        )

    return tell


def _tick(changed_count: int, ended_count: int) -> str:
    dead = f"; {counted(ended_count, 'run')} ended, whose process had died" if ended_count else ""
    return f"{counted(changed_count, 'check')} changed{dead}"


def changed(instance: DagsterInstance, evaluations: Sequence[AssetCheckEvaluation]) -> Iterator[AssetCheckEvaluation]:
    """The evaluations that differ from the last ones: Dagster keeps every event."""
    records = check_records.latest(instance, [evaluation.asset_check_key for evaluation in evaluations])
    for evaluation in evaluations:
        record = records.get(evaluation.asset_check_key)
        last_evaluation = check_records.shown_evaluation(instance, record) if record else None
        is_new = last_evaluation is None or not check_records.says_the_same(last_evaluation, evaluation)
        if is_new or check_records.is_of_another(last_evaluation, evaluation):
            yield evaluation


def _unjudged(instance: DagsterInstance, keys: Sequence[AssetCheckKey]) -> Iterator[AssetCheckEvaluation]:
    """The last evaluations of checks that a run planned but did not evaluate: it died or was canceled."""
    for key, record in check_records.latest(instance, keys).items():
        if not check_records.is_judged(record) and not check_records.is_under_way(instance, record):
            yield from check_records.as_last_judged(instance, [key])
