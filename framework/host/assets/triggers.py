"""Sensors and schedules: Dagster's daemon starts a run if messages wait, no run of that pipeline is queued or under way, and the run
would not fail as the last one did."""

from __future__ import annotations

import threading
from collections.abc import Set

from dagster import (
    AssetKey,
    AssetSelection,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
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

# The name of the job of all assets, in which a run without a selection writes every table.
from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME

from framework.base import amounts, hints
from framework.base.errors import SluiceError, UnreachableError
from framework.core.context.context import Context
from framework.core.follow import follow
from framework.core.publish import waiting
from framework.core.rules import journal
from framework.core.run import leases, same_failure
from framework.core.run.fills import WaitingSize
from framework.host.assets import default_status
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.outages import Outages
from framework.host.assets.translator import Assets
from framework.plan import Pipeline, Plan

TAG = "sluice/pipeline"
_FINISHED = {DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED}
_UNFINISHED = [status for status in DagsterRunStatus if status not in _FINISHED]
_INTERVAL = 30  # seconds between two looks at what waits


class Triggers:
    """The sensors and schedules of one process. They share connections, and the clusters that do not answer."""

    def __init__(self, plan: Plan, assets: Assets, status: DefaultStatus) -> None:
        self.plan, self.assets = plan, assets
        self._of_sensors, self._of_schedules = default_status.of_sensors(status), default_status.of_schedules(status)
        self.engine = Context(plan)
        self.outages = Outages()
        self.fills = WaitingSize(self.engine)
        self._registry = threading.Lock()

    def sensor(self, pipeline: Pipeline) -> SensorDefinition:
        @sensor(
            name=self.assets.named(f"{pipeline.name}_waits"), target=self._target(pipeline), minimum_interval_seconds=pipeline.run.every,
            default_status=self._of_sensors, description=f"Starts {pipeline.name} where messages wait.",
        )  # fmt: skip
        def ask(context: SensorEvaluationContext) -> RunRequest | SkipReason:
            return self._asked(context.instance, pipeline)

        return ask

    def schedule(self, pipeline: Pipeline) -> ScheduleDefinition:
        @schedule(
            pipeline.run.cron or "", name=self.assets.named(f"{pipeline.name}_schedule"), target=self._target(pipeline),
            execution_timezone=pipeline.run.timezone, default_status=self._of_schedules,
            description=f"Starts {pipeline.name} at {pipeline.run.cron} ({pipeline.run.timezone}).",
        )  # fmt: skip
        def ask(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
            try:
                return self._asked(context.instance, pipeline)
            except UnreachableError:  # the next tick may be tomorrow's; a run tries again some times
                return self._request(pipeline)

        return ask

    def early_sensor(self, pipeline: Pipeline) -> SensorDefinition:
        """Starts a run before its time."""

        @sensor(
            name=self.assets.named(f"{pipeline.name}_fills"), target=self._target(pipeline), minimum_interval_seconds=_INTERVAL,
            default_status=self._of_sensors,
            description=f"Starts {pipeline.name} where {amounts.size(pipeline.run.after or 0)} wait.",
        )  # fmt: skip
        def ask(context: SensorEvaluationContext) -> RunRequest | SkipReason:
            with self.outages.asking(pipeline):
                if not self.fills.full(pipeline):
                    return SkipReason("less waits")
            return self._asked(context.instance, pipeline)

        return ask

    def _target(self, pipeline: Pipeline) -> AssetSelection:
        return AssetSelection.assets(*self.assets.keys.written(pipeline))

    def _asked(self, instance: DagsterInstance, pipeline: Pipeline) -> RunRequest | SkipReason:
        """The answer of a tick. An outage is raised: a sensor's failed tick is red on its page, and a skipped one is not."""
        if run := unfinished(instance, self.assets, pipeline):
            return SkipReason(f"run {run.run_id[:8]} is {run.status.value.lower().replace('_', ' ')}")
        if owner := leases.owner(pipeline.journal_name):
            return SkipReason(f"`sluice stream` keeps it up to date: {owner}")
        try:
            journal.refuse_paused(pipeline)
            with self.outages.asking(pipeline):
                if not waiting.backlog(self.engine, pipeline).rows and not follow.should_try(pipeline):
                    return SkipReason("nothing waits")
            with self._registry:
                failed = same_failure.same_failure(self.engine, pipeline)
        except UnreachableError as error:
            error.hint = hints.of_environment(error.hint, pipeline.environment)
            raise
        except SluiceError as error:
            return SkipReason(hints.of_environment(str(error), pipeline.environment))
        if failed:
            hint = f"hint: {failed.hint}; or materialize the table to try it now"
            return SkipReason(hints.of_environment(f"{same_failure.says(failed)}\n  {hint}", pipeline.environment))
        return self._request(pipeline)

    def _request(self, pipeline: Pipeline) -> RunRequest:
        return RunRequest(tags={TAG: self.assets.named(pipeline.name)})


def unfinished(instance: DagsterInstance, assets: Assets, pipeline: Pipeline) -> DagsterRun | None:
    """A run of the pipeline that is queued, starting, running or being canceled, however it was started."""
    keys, tag = set(assets.keys.written(pipeline)), assets.named(pipeline.name)
    for run in instance.get_runs(RunsFilter(statuses=_UNFINISHED)):
        of_all = run.asset_selection is None and run.job_name == IMPLICIT_ASSET_JOB_NAME
        if of_all or run.tags.get(TAG) == tag or keys & _planned(instance, run):
            return run
    return None


def _planned(instance: DagsterInstance, run: DagsterRun) -> Set[AssetKey]:
    """The assets that a run materializes, also where it is one of a user's own job, which selects none."""
    if run.asset_selection:
        return run.asset_selection
    records = instance.get_records_for_run(run.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION_PLANNED).records
    events = (record.event_log_entry.dagster_event for record in records)
    return {event.asset_key for event in events if event and event.asset_key}
