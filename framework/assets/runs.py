"""A pipeline as one step of Dagster's: its batches until it is caught up, and what Dagster is told of them.

Limit: one process and one Spark session per run; several runs of one table are safe, and the later ones find nothing to do.
"""

# Without `from __future__ import annotations`: Dagster reads the types of a step's configuration.
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetExecutionContext,
    AssetMaterialization,
    AssetsDefinition,
    Config,
    Failure,
    InitResourceContext,
    MaterializeResult,
    RetryRequested,
    multi_asset,
)
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from framework.assets import checks, described, progress, results
from framework.assets.starts import TAG
from framework.engine import again, loop, notes
from framework.engine.batch import Batch
from framework.engine.context import Context
from framework.engine.unanswered import outage
from framework.errors import Paused, SluiceError
from framework.plan.model import Pipeline, Plan
from framework.status import Status, judged
from framework.watch import newest, watch

Result = MaterializeResult[Any] | AssetCheckResult | AssetCheckEvaluation
_TRIES = 3
_BETWEEN = 20  # seconds
_PASSING = ("kafka-unreachable", "catalog-unreachable")  # what does not answer may be back in a moment


class SparkOfARun(LazyPySparkResource):
    """Dagster's own lazy session, which ends with the run."""

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        if self._spark_session is not None:
            with suppress(Exception):  # it may have died, or its connection with a run that was canceled
                self._spark_session.stop()
            self._spark_session = None


class Launch(Config):
    """What a person can choose for one run."""

    until: str | None = Field(None, description="Read no further than this time of Kafka's, such as 2026-01-05T10:00:00Z.")
    until_offsets: dict[str, int] = Field(
        {}, description="Read no further than these offsets, by topic/partition: {trades/0: 500}."
    )


def table(plan: Plan, pipeline: Pipeline, between: float = _BETWEEN) -> AssetsDefinition:
    """`between`: seconds until a run tries again what does not answer."""
    specs = [described.table(pipeline)]
    if pipeline.bad_rows != "drop":
        specs.append(described.bad_rows(pipeline))

    @multi_asset(
        name=pipeline.name, specs=specs, check_specs=checks.specs(pipeline), pool=f"table_{pipeline.name}",
        op_tags={TAG: pipeline.name}, required_resource_keys={"spark"}, can_subset=True,
    )  # fmt: skip
    def run(context: AssetExecutionContext, config: Launch) -> Iterator[Result]:
        if not context.selected_asset_keys:  # somebody executes a check
            yield from _told(context, pipeline, iter(checks.now(_status(plan, pipeline))))
            return
        batches: list[Batch] = []
        engine = None
        try:
            notes.refuse_paused(pipeline.name)
            engine = Context(
                plan, lambda: progress.started(context, plan), progress.points(context), until=_until(pipeline, config)
            )
            seen = _status(plan, pipeline).seen
            if seen.trouble and seen.trouble.code in _PASSING:
                notes.failed(pipeline.name, seen.trouble)
                raise seen.trouble
            progress.waiting(context, pipeline, seen)
            for batch in loop.batches(engine, pipeline):
                batches.append(batch)
                progress.batch(context, batch)
        except Paused as error:
            if _asked_by_name(context, pipeline):
                yield from _failed(context, plan, pipeline, error, between, batches)
            context.log.warning(f"{error.message}: left out")
            yield from _told(context, pipeline, _without_news(context, _status(plan, pipeline), error.message))
            return
        except DagsterExecutionInterruptedError:
            context.log.warning("canceled: what was published stays, and the next run continues behind it")
            _record(context, _status(plan, pipeline), batches)
            raise
        except Exception as error:
            named = outage(pipeline, error) or error
            if not isinstance(named, SluiceError):
                raise
            if named is not error:
                notes.failed(pipeline.name, named)
            if engine:
                with suppress(SluiceError):
                    again.note(engine, pipeline)
            yield from _failed(context, plan, pipeline, named, between, batches)
        status = _status(plan, pipeline)
        found = _news(pipeline, status, batches) if batches else _without_news(context, status, "up to date: nothing waits")
        yield from _told(context, pipeline, found)

    return run


def _failed(
    context: AssetExecutionContext, plan: Plan, pipeline: Pipeline, error: SluiceError, between: float, batches: list[Batch]
) -> Iterator[Result]:
    """Tries again what may pass; else tells the checks and ends the step. What was committed before is recorded in any case."""
    status = _status(plan, pipeline)
    bad = _record(context, status, batches)
    if error.code in _PASSING and context.retry_number < _TRIES:
        context.log.warning(f"{error}\n  trying again in {between:g} s, {context.retry_number + 1} of {_TRIES}")
        raise RetryRequested(_TRIES, between) from Failure(str(error))
    stopped = list(checks.stopped(pipeline, error))
    judged = checks.results(pipeline, batches, bad) if batches else iter(())
    told = [*stopped, *(each for each in judged if each.check_name not in {one.check_name for one in stopped})]
    yield from _told(context, pipeline, iter([*told, *checks.now(status)]))
    # A person must do something first; trying again would find the same.
    raise Failure(str(error), allow_retries=False) from None


def _record(context: AssetExecutionContext, status: Status, batches: list[Batch]) -> Counter[str]:
    """What a run committed that did not come to its end. A step that fails has no outputs, so it is told by events."""
    if not batches:
        return Counter()
    bad = results.bad_rows(status.pipeline, batches)
    for result in results.committed(status.pipeline, status.seen, batches, bad, status.newest):
        _event(context, result)
    return bad


def _event(context: AssetExecutionContext, result: MaterializeResult[Any]) -> None:
    if result.asset_key and result.data_version:
        tags = {DATA_VERSION_TAG: result.data_version.value}
        context.log_event(AssetMaterialization(result.asset_key, metadata=result.metadata, tags=tags))


def _news(pipeline: Pipeline, status: Status, batches: list[Batch]) -> Iterator[Result]:
    bad = results.bad_rows(pipeline, batches)
    yield from results.committed(pipeline, status.seen, batches, bad, status.newest)
    yield from checks.results(pipeline, batches, bad)
    yield from checks.now(status)


def _without_news(context: AssetExecutionContext, status: Status, says: str) -> Iterator[Result]:
    pipeline = status.pipeline
    context.log.info(f"{pipeline.table.identifier}: {says}")
    context.log_event(results.up_to_date(pipeline, status.seen, status.newest, says))
    yield results.nothing_new(described.table_key(pipeline))
    if pipeline.bad_rows != "drop":
        yield results.nothing_new(described.bad_rows_key(pipeline))
    yield from checks.now(status)


def _told(context: AssetExecutionContext, pipeline: Pipeline, found: Iterator[Result]) -> Iterator[Result]:
    """A run is of the table and its bad rows, whichever of them was selected: what was not is told as an event. Checks that the run
    did not judge stay as they were."""
    left = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    for result in found:
        if isinstance(result, AssetCheckResult):
            if (result.asset_key, result.check_name) in left:
                left.remove((result.asset_key, result.check_name))
                yield result
        elif isinstance(result, AssetCheckEvaluation) or result.asset_key in context.selected_asset_keys:
            yield result
        else:
            _event(context, result)
    yield from checks.as_last_judged(context.instance, [AssetCheckKey(key, name) for key, name in sorted(left)])


def _asked_by_name(context: AssetExecutionContext, pipeline: Pipeline) -> bool:
    """Whether the run is of this table alone."""
    keys = {described.table_key(pipeline), described.bad_rows_key(pipeline)}
    return set(context.job_def.asset_layer.executable_asset_keys) <= keys


def _status(plan: Plan, pipeline: Pipeline) -> Status:
    (seen,) = watch(plan, [pipeline])
    latest = None if seen.unseen else newest(pipeline)
    return judged(pipeline, seen, notes.read(pipeline.name), latest, datetime.now(timezone.utc))


def _until(pipeline: Pipeline, config: Launch) -> datetime | Mapping[str, int] | None:
    topics = [topic.kafka_name for topic in pipeline.topics]
    wrong = [each for each in config.until_offsets if each.rpartition("/")[0] not in topics]
    if wrong or (config.until and not topics):
        what = f"`{wrong[0]}` is no partition of what {pipeline.name} reads" if wrong else f"{pipeline.name} reads no topic"
        hint = f"write a topic, / and a number, such as {topics[0]}/0" if topics else "leave `until` out"
        raise SluiceError("bad-limit", what, hint)
    if config.until is None:
        return config.until_offsets or None
    from framework.spec.scalars import read_time

    try:
        return read_time(config.until)
    except ValueError:
        raise SluiceError("bad-time", f"`until: {config.until}` is no time", "write it as 2026-01-05T10:00:00Z") from None
