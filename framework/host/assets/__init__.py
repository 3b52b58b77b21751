"""A plan as Dagster assets, sensors, schedules and jobs. No other part of Sluice imports Dagster."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from dagster import AssetsDefinition, BetaWarning, Definitions, PreviewWarning, ScheduleDefinition, SensorDefinition

from framework.base.errors import SpecError
from framework.base.home import environment_of
from framework.features.export import queries
from framework.host.assets import (
    alerts,
    broken,
    default_status as statuses,
    exports,
    loading,
    maintenance,
    previews,
    rotation,
    states,
)
from framework.host.assets.broken import Kept
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.loading import Strict
from framework.host.assets.runs import table
from framework.host.assets.spark_resource import SparkOfARun
from framework.host.assets.translator import Assets, SluiceTranslator
from framework.host.assets.triggers import Triggers
from framework.plan import Pipeline
from framework.plan.export import Export


def build_sluice_definitions(
    specs: str | Path = "specs",
    *,
    env: str | None = None,
    select: str | Collection[str] = (),
    translator: SluiceTranslator | None = None,
    sensors: bool = True,
    default_status: DefaultStatus = "stopped",
    strict: Strict = "auto",
    name: str = "",
) -> Definitions:
    """Dagster's definitions for a folder with specs.

    - `env`: the environment, a folder of `environments`; without it SLUICE_ENV, or `local`.
    - `select`: names of pipelines or of their tables, in place of all. Their topics, bad rows and exports come with them.
    - `translator`: chooses keys, groups, tags, owners and automation of the assets.
    - `sensors`: whether Sluice's sensors and schedules come with them. Those of Dagster's automation conditions are the code location's.
    - `default_status`: whether sensors and schedules are `running` from the first load on, or `stopped` until somebody turns them on in
      Dagster.
    - `strict`: whether specs with problems raise `SpecError`. Otherwise each file with problems is an asset that shows them, and the
      other pipelines are as they were. `auto`: a server of Dagster's shows them, and everything else, such as a command, raises.
    - `name`: stands before the names of steps, jobs, sensors and the resource, so that a code location can have several folders.
    """
    from framework.host.plans import load, parts
    from framework.language import without_collection
    from framework.plan.chosen import chosen

    with loading.naming_errors(), without_collection(), warnings.catch_warnings():
        statuses.require_valid(default_status)
        ends_by_problems = loading.is_strict(strict)
        folder, environment = Path(specs), environment_of(env)
        names = {select} if isinstance(select, str) else set(select)
        # Dagster would warn once per asset that freshness policies and code references are new.
        for category in (BetaWarning, PreviewWarning):
            warnings.simplefilter("ignore", category)
        plan, problems, can_run = parts(folder, environment)
        problems = (*problems, *queries.problems(plan))
        if problems and ends_by_problems:
            raise SpecError(problems)
        assets = Assets(plan, translator, name)
        kept_tables = list(broken.tables(load(folder, environment), plan, assets, can_run, problems)) if problems else []
        asked_pipelines = chosen(plan, names, may_lack=bool(problems))
        kept_tables = [kept_table for kept_table in kept_tables if not names or kept_table.names & names]
        runnable = [pipeline for pipeline in can_run if pipeline in asked_pipelines]
        files = [export for export in assets.exports if export.pipeline in runnable]
        triggers = Triggers(plan, assets, default_status)
        return Definitions(
            assets=[
                # As definitions of their own: Dagster links no code references of plain asset specs to git.
                *(AssetsDefinition(specs=[spec]) for spec in assets.topics(asked_pipelines if names else None)),
                *(table(plan, assets, pipeline) for pipeline in runnable),
                *(exports.asset(export, assets, plan.secrets) for export in files),
                *(kept_table.definition() for kept_table in kept_tables),
                *broken.files(assets, problems),
            ],
            jobs=[module.job_of(plan, assets, runnable) for module in (previews, maintenance)] if runnable else None,
            sensors=[*_sensors(triggers, runnable, kept_tables, default_status)] if sensors else None,
            schedules=[*_schedules(triggers, runnable, files, default_status)] if sensors else None,
            resources={assets.spark: SparkOfARun(spark_config={})},
        )


def _sensors(
    triggers: Triggers, runnable: Sequence[Pipeline], kept_tables: Sequence[Kept], status: DefaultStatus
) -> Iterator[SensorDefinition]:
    for pipeline in runnable:
        if pipeline.run.every:
            yield triggers.sensor(pipeline)
        if pipeline.run.after:
            yield triggers.early_sensor(pipeline)
    if runnable or kept_tables:
        yield states.sensor_of(
            triggers.plan, triggers.assets, runnable, [kept_table.check() for kept_table in kept_tables], status
        )
    if any(pipeline.alerts for pipeline in runnable):
        yield alerts.sensor_of(triggers.plan, triggers.assets, runnable, status)
    if any(document.value.rotate_every for document in triggers.plan.documents_of("keys")):
        yield rotation.sensor_of(triggers.plan, triggers.assets, status)


def _schedules(
    triggers: Triggers, runnable: Sequence[Pipeline], files: Sequence[Export], status: DefaultStatus
) -> Iterator[ScheduleDefinition]:
    yield from (triggers.schedule(pipeline) for pipeline in runnable if pipeline.run.cron)
    if runnable:
        yield maintenance.schedule_of(triggers.assets, runnable, status)
    yield from (exports.schedule_of(export, triggers.assets, status) for export in files if export.schedule)
