"""A pipeline as one step of Dagster: its batches until it is caught up, and their results.

*Limit* One process and one Spark session per run. Several runs of one table are safe; the later ones have nothing to do.
"""

# Without `from __future__ import annotations`: Dagster reads the type of a step's context.
from collections.abc import Iterable, Iterator
from contextlib import suppress

from dagster import AssetExecutionContext, AssetsDefinition, DagsterExecutionInterruptedError, multi_asset

from framework.base import hints
from framework.base.errors import Paused, SluiceError, SparkEnded
from framework.core.context.context import Context
from framework.core.rules import journal
from framework.core.run import events, run as loop, same_failure
from framework.host.assets import checks, dead_runs, progress, results, run_outcomes
from framework.host.assets.keys import AssetKeys
from framework.host.assets.launch import Launch, until
from framework.host.assets.run_outcomes import Result
from framework.host.assets.spark_resource import SparkOfARun
from framework.host.assets.told import Told
from framework.host.assets.translator import Assets
from framework.host.assets.triggers import TAG
from framework.host.watchers import with_watchers
from framework.operations.observe.status import status_of
from framework.plan import Pipeline, Plan

_OPTIONS = Launch.to_fields_dict()  # made once: for each asset Dagster would make it again


def table(plan: Plan, assets: Assets, pipeline: Pipeline, between: float = run_outcomes.BETWEEN) -> AssetsDefinition:
    keys, name = assets.keys, assets.named(pipeline.name)

    @multi_asset(
        name=name, specs=assets.tables(pipeline), check_specs=checks.specs(keys.table(pipeline), pipeline),
        pool=assets.named(f"table_{pipeline.name}"), op_tags={TAG: name}, required_resource_keys={assets.spark}, can_subset=True,
        config_schema=_OPTIONS,
    )  # fmt: skip
    def run(context: AssetExecutionContext) -> Iterator[Result]:
        if not context.selected_asset_keys:  # only a check is executed
            yield from run_outcomes.step_results(context, checks.state_results(keys, status_of(plan, pipeline)))
            return
        dead_runs.mark(context.instance, context.run.run_id)
        told = Told()
        says = "up to date: nothing waits"
        try:
            if run_outcomes.is_automatic(context) and (failed := same_failure.same_failure(Context(plan), pipeline)):
                says = f"left out: {same_failure.says(failed)}"
            else:
                _run(context, plan, assets, pipeline, Launch(**context.op_execution_context.op_config), told)
        except Paused as error:
            if run_outcomes.asked_by_name(context, keys, plan, pipeline):
                yield from run_outcomes.failed(context, keys, status_of(plan, pipeline), error, between, told)
            says = f"{error.message}: left out"
        except DagsterExecutionInterruptedError:
            context.log.warning("canceled: the published batches stay, and the next run continues after them")
            run_outcomes.record(context, keys, status_of(plan, pipeline), told)
            raise DagsterExecutionInterruptedError from None  # without Spark's stack trace, which is pages long and helps nobody
        except SluiceError as error:
            yield from run_outcomes.failed(context, keys, status_of(plan, pipeline), error, between, told)
        except Exception:
            run_outcomes.record(context, keys, status_of(plan, pipeline), told)
            raise
        status = status_of(plan, pipeline)
        table_results = (
            run_outcomes.with_batches(keys, status, told)
            if told.batches
            else run_outcomes.without_batches(context, keys, status, says)
        )
        yield from run_outcomes.step_results(context, table_results)

    return run


def _run(context: AssetExecutionContext, plan: Plan, assets: Assets, pipeline: Pipeline, config: Launch, told: Told) -> None:
    """Run the batches and add all events to `told`. The failure is noted and raised at the end."""
    journal.refuse_paused(pipeline)
    limit = until(pipeline, config)
    spark: SparkOfARun = getattr(context.resources, assets.spark)
    engine = Context(plan, lambda: progress.started(context, spark, plan, engine.rows), progress.points(context), until=limit)
    watched = status_of(plan, pipeline).progress
    if isinstance(watched.trouble, run_outcomes.PASSING):
        journal.record_failure(pipeline.journal_name, watched.trouble)
        error: SluiceError | None = watched.trouble
        _error_of(context, assets.keys, loop.followed(engine, pipeline), told)  # with all that the table has
    else:
        progress.waiting(context, pipeline, watched)
        told.waited = watched.lag
        error = _error_of(context, assets.keys, loop.run(engine, pipeline), told)
    if error is not None:
        if isinstance(error, SparkEnded):
            spark.forget()
        with suppress(SluiceError):
            same_failure.note(engine, pipeline)
        raise error


def _error_of(context: AssetExecutionContext, keys: AssetKeys, run: Iterable[events.Event], told: Told) -> SluiceError | None:
    """Logs the events of a run, and returns what stopped it."""
    error: SluiceError | None = None
    for event in with_watchers(run):
        told.add(event)
        environment = event.pipeline.environment
        match event:
            case events.BatchDone():
                progress.batch(context, event)
            case events.Maintained(_, done):
                context.log.info(hints.of_environment(done.line, environment))
            case events.LeftOut(_, reason):
                error = reason
            case events.Failed(follower=None):
                error = event.error
            case events.Failed():
                context.log.warning(hints.of_environment(str(event.error), environment))
            case events.Began() | events.Rebuilt() | events.Ended():
                pass
            case followed:
                context.log.info(followed.line)
                for record in results.follower_records(keys, followed):
                    context.log_event(record)
    return error
