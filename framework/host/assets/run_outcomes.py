"""The outcome of a run's step: with batches, without, with an error or canceled; and the events that Dagster gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetExecutionContext,
    Failure,
    MaterializeResult,
    Output,
    RetryRequested,
)

# A run tells by this tag alone that an automation condition started it.
from dagster._core.storage.tags import AUTOMATION_CONDITION_TAG

from framework.base import hints
from framework.base.errors import CatalogAway, KafkaAway, RegistryAway, SluiceError
from framework.host.assets import check_records, checks, results
from framework.host.assets.keys import AssetKeys
from framework.host.assets.told import Told
from framework.operations.observe.status import Status
from framework.plan import Pipeline, Plan

TableResult: TypeAlias = MaterializeResult[Any] | AssetCheckResult
Result: TypeAlias = TableResult | AssetCheckEvaluation | Output[None]
PASSING = (KafkaAway, CatalogAway, RegistryAway)  # may answer again in a moment
_TRIES = 3
BETWEEN = 20  # seconds before a retry, if Kafka or the catalog does not answer


def failed(
    context: AssetExecutionContext, keys: AssetKeys, status: Status, error: SluiceError, between: float, told: Told
) -> Iterator[Result]:
    """Retry an error that can pass; otherwise report the checks and fail the step. The committed batches are recorded in any case."""
    pipeline = status.pipeline
    bad = record(context, keys, status, told)
    says = hints.of_environment(str(error), pipeline.environment)
    retry(context, error, says, between)
    stopped = list(checks.stopped(keys, pipeline, error))
    names = {result.check_name for result in stopped}
    other_results = (
        [result for result in checks.results(keys, pipeline, told.batches, bad) if result.check_name not in names]
        if told.batches
        else []
    )
    yield from step_results(context, [*stopped, *other_results, *checks.state_results(keys, status)])
    # A person must do something first; a retry would fail in the same way.
    raise Failure(says, allow_retries=False) from None


def retry(context: AssetExecutionContext, error: SluiceError, says: str, between: float = BETWEEN) -> None:
    """Ends this try of a step for another one, if the error can pass and there were few."""
    if isinstance(error, PASSING) and context.retry_number < _TRIES:
        context.log.warning(f"{says}\n  retrying in {between:g} s, {context.retry_number + 1} of {_TRIES}")
        raise RetryRequested(_TRIES, between) from Failure(says)


def record(context: AssetExecutionContext, keys: AssetKeys, status: Status, told: Told) -> Counter[str]:
    """Record the batches of a run that did not finish, and return its bad rows by their message. A failed step has no outputs, so these
    are events."""
    bad: Counter[str] = Counter()
    try:
        if told.batches:
            bad = results.bad_rows(status.pipeline, told.batches)
            for result in results.committed(keys, status, told, bad):
                _event(context, result)
    except SluiceError as error:
        context.log.warning(f"{len(told.batches)} batches were published and are not recorded here: {error}")
    return bad


def _event(context: AssetExecutionContext, result: MaterializeResult[Any]) -> None:
    if result.asset_key and result.data_version:
        context.log_event(results.event(result.asset_key, result.metadata, result.data_version.value))


def with_batches(keys: AssetKeys, status: Status, told: Told) -> Iterator[TableResult]:
    pipeline = status.pipeline
    bad = results.bad_rows(pipeline, told.batches)
    yield from results.committed(keys, status, told, bad)
    yield from checks.results(keys, pipeline, told.batches, bad)
    yield from checks.state_results(keys, status)


def without_batches(context: AssetExecutionContext, keys: AssetKeys, status: Status, says: str) -> Iterator[TableResult]:
    pipeline = status.pipeline
    context.log.info(f"{pipeline.table.identifier}: {says}")
    context.log_event(results.up_to_date(keys, status, says))
    yield from map(results.nothing_new, keys.written(pipeline))
    yield from checks.state_results(keys, status)


def step_results(context: AssetExecutionContext, table_results: Iterable[TableResult]) -> Iterator[Result]:
    """The results of a step. A run always writes the table and its bad rows: the one that was not selected is recorded by an event.
    Checks that the run did not evaluate keep their last results."""
    open_checks = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    for result in table_results:
        if isinstance(result, AssetCheckResult):
            if (result.asset_key, result.check_name) in open_checks:
                open_checks.remove((result.asset_key, result.check_name))
                check_records.report_again(context.instance, check_records.evaluation(result), context.run.run_id)
                yield result
        elif result.asset_key in context.selected_asset_keys:
            yield result
        else:
            _event(context, result)
    for key, name in sorted(open_checks):
        check = AssetCheckKey(key, name)
        # Without this output Dagster warns that a blocking check has no result.
        yield Output(None, output_name=context.job_def.asset_layer.get_op_output_name(check) or "")
        yield from check_records.as_last_judged(context.instance, [check])


def is_automatic(context: AssetExecutionContext) -> bool:
    """Whether an automation condition of Dagster started the run, which does not know what Sluice's sensors ask."""
    return AUTOMATION_CONDITION_TAG in context.run.tags


def asked_by_name(context: AssetExecutionContext, keys: AssetKeys, plan: Plan, pipeline: Pipeline) -> bool:
    """Whether somebody started the run for this table alone, though the plan has others."""
    written = set(keys.written(pipeline))
    alone = set(context.job_def.asset_layer.executable_asset_keys) <= written
    return alone and not is_automatic(context) and len(plan.pipelines) > 1
