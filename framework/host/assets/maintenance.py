"""A job that maintains tables, and its schedule: runs maintain their own tables, but a table that no run comes to grows old, too.

What was done is an observation of the table.
"""

# Without `from __future__ import annotations`: Dagster reads the types of an op.
from collections.abc import Iterator, Sequence

from dagster import (
    Array,
    AssetObservation,
    Failure,
    Field,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    job,
    op,
    schedule,
)

from framework.base import hints
from framework.base.clock import utc_now
from framework.base.errors import SluiceError, SparkEnded
from framework.core.context.context import Context
from framework.core.maintain.maintain import MaintenanceDone, is_due, maintain
from framework.core.run import leases
from framework.core.spark import defects
from framework.host.assets import dead_runs, default_status, progress
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.keys import AssetKeys
from framework.host.assets.translator import Assets
from framework.plan import Pipeline, Plan

_CRON = "17 * * * *"  # not at a full hour, when other schedules begin


def job_of(plan: Plan, assets: Assets, pipelines: Sequence[Pipeline]) -> JobDefinition:
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    names_field = Field(Array(str), default_value=sorted(by_name), description="Whose tables; only what is due is done.")

    # Capital letters: Dagster has one namespace for all names, and no pipeline's name has capitals.
    @op(name=assets.named("Maintain"), config_schema={"pipelines": names_field}, required_resource_keys={assets.spark})
    def maintain_op(context: OpExecutionContext) -> None:
        names = context.op_config["pipelines"]
        if unknown := sorted(set(names) - by_name.keys()):
            raise Failure(f"there is no pipeline {', '.join(unknown)}", allow_retries=False)
        dead_runs.mark(context.instance, context.run_id)
        failures = list(_maintained(context, plan, assets, [by_name[name] for name in names]))
        if failures:
            raise Failure(hints.of_environment("\n".join(failures), plan.environment), allow_retries=False)

    @job(
        name=assets.named("Maintenance"),
        description="Compacts files and expires snapshots of tables, as their option `maintain` says.",
    )
    def maintenance_job() -> None:
        maintain_op()

    return maintenance_job


def schedule_of(assets: Assets, pipelines: Sequence[Pipeline], status: DefaultStatus) -> ScheduleDefinition:
    @schedule(
        _CRON, job_name=assets.named("Maintenance"), name=assets.named("Maintenance_schedule"), execution_timezone="UTC",
        default_status=default_status.of_schedules(status), description="Maintains tables once an hour, if one is due.",
    )  # fmt: skip
    def ask(_context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        names = [pipeline.name for pipeline in pipelines if _is_due(pipeline)]
        if not names:
            return SkipReason("no table is due")
        return RunRequest(run_config={"ops": {assets.named("Maintain"): {"config": {"pipelines": names}}}})

    return ask


def _is_due(pipeline: Pipeline) -> bool:
    if leases.owner(pipeline.journal_name):
        return False  # `sluice stream` maintains it
    try:
        return is_due(pipeline, utc_now())
    except SluiceError:
        return False  # which the sensor of its runs says


def _maintained(context: OpExecutionContext, plan: Plan, assets: Assets, pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Maintains the tables. Gives the failures, none of which stops the other tables."""
    spark = getattr(context.resources, assets.spark)
    engine = Context(plan, lambda: progress.started(context, spark, plan), clock=utc_now)
    for pipeline in pipelines:
        try:
            done = list(maintain(engine, pipeline, may_leave=True))
        except Exception as error:
            sluice_error = defects.as_sluice_error(pipeline.name, error)
            yield f"{pipeline.name}: {sluice_error}"
            if isinstance(sluice_error, SparkEnded):
                spark.forget()
                engine.forget_what_failed()
            continue
        for work in done:
            context.log.info(work.line)
            context.log_event(_observation(assets.keys, pipeline, work))


def _observation(keys: AssetKeys, pipeline: Pipeline, done: MaintenanceDone) -> AssetObservation:
    key = keys.table(pipeline) if done.identifier == pipeline.table.identifier else keys.bad_rows(pipeline)
    says = "; ".join(done.says)
    return AssetObservation(key, description=says, metadata={"maintenance": MetadataValue.text(says)})
