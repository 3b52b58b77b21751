"""A plan as Dagster assets, sensors, schedules and jobs. No other part of Sluice imports Dagster."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from pathlib import Path
from typing import NoReturn

from dagster import BetaWarning, Definitions, PreviewWarning, in_process_executor

from framework.assets import asset_specs, broken, exports, maintenance, previews, states
from framework.assets.runs import SparkOfARun, table
from framework.assets.triggers import Triggers
from framework.engine.spark import session
from framework.errors import SpecError


def definitions(specs: Path, environment: str | None = None) -> Definitions:
    """The definitions that Dagster loads. A spec with problems ends a command, which prints them; a server shows it as a broken
    asset and keeps the other pipelines."""
    from framework.plan.passes import parts
    from framework.spec import load, without_collection

    environment = environment or os.environ.get("SLUICE_ENV", "local")
    with without_collection(), warnings.catch_warnings():
        # Dagster would warn once per asset that freshness policies and code references are new.
        for new in (BetaWarning, PreviewWarning):
            warnings.simplefilter("ignore", new)
        plan, problems, runnable = parts(specs, environment)
        if problems and not _serves():
            _refuse(SpecError(problems))
        # Two documents may describe one topic in Kafka, which is one asset.
        by_key = {asset_specs.topic_key(each): asset_specs.topic(each, plan.pipelines) for each in reversed(plan.topics)}
        topics = [*by_key.values(), *asset_specs.followers(plan.pipelines, by_key)]
        tables = [table(plan, each) for each in runnable]
        kept = list(broken.tables(load(specs, environment), plan, runnable, problems)) if problems else []
        triggers = Triggers(plan)
        sensors = [triggers.sensor(each) for each in runnable if each.run.every]
        sensors += [triggers.early_sensor(each) for each in runnable if each.run.after]
        if runnable or kept:
            sensors.append(states.sensor_of(plan, runnable, (each.check() for each in kept)))
        jobs = [maintenance.job_of(plan, runnable)] if runnable else []
        schedules = [maintenance.schedule_of(each, runnable) for each in jobs]
        written = exports.of(plan)
        schedules += [exports.schedule_of(each) for each in written if each.schedule]
        gc.freeze()  # what Dagster loads stays, so no collection need look at it again
        return Definitions(
            assets=[
                *topics,
                *tables,
                *(exports.asset(each, plan.secrets) for each in written),
                *(each.definition() for each in kept),
                *broken.files(problems),
            ],
            sensors=sensors,
            schedules=[*(triggers.schedule(each) for each in runnable if each.run.cron), *schedules],
            jobs=[*previews.jobs(plan, runnable), *jobs],
            resources={"spark": SparkOfARun(spark_config=session.settings(plan))},
            executor=in_process_executor,
        )


def _refuse(error: SpecError) -> NoReturn:
    """Raise the error; in a command, print it and exit, without the traceback that Dagster would print."""
    if _command() in ("asset", "job"):
        print(error, file=sys.stderr)
        raise SystemExit(1)
    raise error


def _serves() -> bool:
    """Whether this process serves Dagster's web server and daemon, or carries out a run that they started."""
    return _command() in ("api", "code-server") and not os.environ.get("DAGSTER_IS_DEFS_VALIDATION_CLI")


def _command() -> str:
    """The Dagster command that this process runs; empty if it runs none."""
    program, command = (*sys.argv, "", "")[:2]
    return command if "dagster" in program else ""
