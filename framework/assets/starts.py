"""When Dagster's daemon starts a run: every so often or by a schedule, where messages wait and no run of that pipeline is under way.

A table that is caught up is told to Dagster as fresh, since nothing newer can be in it; how old its data is, is a check of its own.
"""

from __future__ import annotations

import time

from dagster import (
    AssetCheckEvaluation,
    AssetMaterialization,
    AssetSelection,
    DagsterInstance,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    schedule,
    sensor,
)
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES

from framework.assets import checks
from framework.assets.described import bad_rows_key, table_key
from framework.assets.runs import metadata
from framework.engine import notes
from framework.engine.batch import nothing_waits
from framework.engine.context import Context
from framework.errors import SluiceError
from framework.plan.model import Pipeline, Plan
from framework.watch import newest, watched


def sensor_of(plan: Plan, pipeline: Pipeline) -> SensorDefinition:
    engine = Context(plan)

    @sensor(
        name=f"{pipeline.name}_waits", target=_target(pipeline), minimum_interval_seconds=pipeline.run.every,
        default_status=DefaultSensorStatus.RUNNING, description=f"Starts {pipeline.name} where messages wait.",
    )  # fmt: skip
    def ask(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        found = _asked(context.instance, engine, pipeline)
        if isinstance(found, SkipReason) and found.skip_message == _NOTHING and pipeline.fresh_within:
            last = context.instance.get_latest_materialization_event(table_key(pipeline))
            # Dagster forgets no event: twice within the time is enough.
            if last is None or time.time() - last.timestamp > pipeline.fresh_within / 2:
                _is_fresh(context.instance, plan, pipeline)
        return found

    return ask


def schedule_of(plan: Plan, pipeline: Pipeline) -> ScheduleDefinition:
    engine = Context(plan)

    @schedule(
        pipeline.run.cron or "", name=f"{pipeline.name}_schedule", target=_target(pipeline), execution_timezone="UTC",
        default_status=DefaultScheduleStatus.RUNNING, description=f"Starts {pipeline.name} at {pipeline.run.cron} (UTC).",
    )  # fmt: skip
    def ask(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        return _asked(context.instance, engine, pipeline)

    return ask


_NOTHING = "nothing waits"


def _target(pipeline: Pipeline) -> AssetSelection:
    bad_rows = [] if pipeline.bad_rows == "drop" else [bad_rows_key(pipeline)]
    return AssetSelection.assets(table_key(pipeline), *bad_rows)


def _asked(instance: DagsterInstance, engine: Context, pipeline: Pipeline) -> RunRequest | SkipReason:
    tags = {"sluice/pipeline": pipeline.name}
    if instance.get_runs_count(RunsFilter(tags=tags, statuses=[*IN_PROGRESS_RUN_STATUSES])):
        return SkipReason("a run is under way")
    try:
        notes.refuse_paused(pipeline.name)
        if nothing_waits(engine, pipeline):
            return SkipReason(_NOTHING)
    except SluiceError as error:
        return SkipReason(str(error))
    return RunRequest(tags=tags)


def _is_fresh(instance: DagsterInstance, plan: Plan, pipeline: Pipeline) -> None:
    key = table_key(pipeline)
    moment = newest(pipeline)
    found = metadata(watched(plan, pipeline), [], moment)
    instance.report_runless_asset_event(AssetMaterialization(key, description="caught up: nothing waits", metadata=found))
    for age in checks.age(pipeline, moment):
        instance.report_runless_asset_event(
            AssetCheckEvaluation(
                asset_key=key, check_name=checks.NEWEST, passed=age.passed, metadata=age.metadata, severity=age.severity
            )
        )
