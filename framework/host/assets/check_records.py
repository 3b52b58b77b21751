"""Dagster's records of checks: the latest result of each, and whether another result would be news.

Dagster shows the record that was created last. A run creates its records when it is planned, and fills them in when it evaluates the
checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dagster import AssetCheckEvaluation, AssetCheckKey, AssetCheckResult, AssetKey, DagsterInstance

# What an evaluation says of a materialization has no public name either.
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData

# By it alone Dagster finds the last result behind runs that planned a check and died; the history has no public filter.
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

if TYPE_CHECKING:
    # What `event_log_storage` returns has no public name; at run time nobody needs it.
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

_JUDGED = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
RUNLESS = ""  # the run of what a sensor reports
_MAX_RECORDS = 10  # records to read back to a run's own
Materialization: TypeAlias = AssetCheckEvaluationTargetMaterializationData
Records: TypeAlias = "Mapping[AssetCheckKey, AssetCheckExecutionRecord]"


def latest(instance: DagsterInstance, keys: Sequence[AssetCheckKey]) -> Records:
    return instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)


def is_judged(record: AssetCheckExecutionRecord) -> bool:
    return record.status in _JUDGED


def is_under_way(instance: DagsterInstance, record: AssetCheckExecutionRecord) -> bool:
    """Whether a run that has not ended is going to evaluate the check."""
    if is_judged(record):
        return False
    run = instance.get_run_by_id(record.run_id)
    return run is not None and not run.is_finished


def judged_since(instance: DagsterInstance, keys: Sequence[AssetCheckKey], before: Records) -> set[AssetCheckKey]:
    """The checks that were evaluated after these records were read."""

    def is_new(key: AssetCheckKey, record: AssetCheckExecutionRecord) -> bool:
        earlier_record = before.get(key)
        return earlier_record is None or (record.id, record.status) != (earlier_record.id, earlier_record.status)

    return {key for key, record in latest(instance, keys).items() if is_judged(record) and is_new(key, record)}


def shown_evaluation(instance: DagsterInstance, record: AssetCheckExecutionRecord) -> AssetCheckEvaluation | None:
    """The evaluation that Dagster shows for the latest record of a check. The last one stays while a run is going to evaluate the check;
    Dagster shows none after a run that ended without evaluating it."""
    if is_judged(record):
        return record.evaluation
    return last_judged(instance, record.key) if is_under_way(instance, record) else None


def last_judged(instance: DagsterInstance, key: AssetCheckKey) -> AssetCheckEvaluation | None:
    """The last evaluation of a check."""
    for record in instance.event_log_storage.get_asset_check_execution_history(key, limit=1, status=_JUDGED):
        return record.evaluation
    return None


def report_again(instance: DagsterInstance, evaluation: AssetCheckEvaluation, run_id: str) -> None:
    """Report a run's evaluation without the run, if the sensor reported the check after the run was planned. Dagster would go on showing
    the sensor's."""
    for record in instance.event_log_storage.get_asset_check_execution_history(evaluation.asset_check_key, limit=_MAX_RECORDS):
        if record.run_id == run_id:
            return
        if record.run_id == RUNLESS:
            instance.report_runless_asset_event(evaluation)
            return


def as_last_judged(instance: DagsterInstance, keys: Iterable[AssetCheckKey]) -> Iterator[AssetCheckEvaluation]:
    """The last evaluations again, so that a run that evaluates nothing changes nothing. They never block the run."""
    for key in keys:
        if verdict := last_judged(instance, key):
            yield of_materialization(verdict, verdict.target_materialization_data)


def of_materialization(verdict: AssetCheckEvaluation, materialization: Materialization | None) -> AssetCheckEvaluation:
    """An evaluation again, of this materialization: Dagster shows one of another as not evaluated."""
    return AssetCheckEvaluation(
        asset_key=verdict.asset_key, check_name=verdict.check_name, passed=verdict.passed, metadata=verdict.metadata,
        target_materialization_data=materialization, severity=verdict.severity, description=verdict.description, blocking=False,
    )  # fmt: skip


def evaluation(result: AssetCheckResult) -> AssetCheckEvaluation:
    assert result.asset_key is not None
    assert result.check_name is not None
    return AssetCheckEvaluation(
        asset_key=result.asset_key, check_name=result.check_name, passed=result.passed, metadata=result.metadata or {},
        severity=result.severity, description=result.description,
    )  # fmt: skip


def of_others(
    instance: DagsterInstance, keys: Iterable[AssetCheckKey], materializations: Mapping[AssetKey, Materialization]
) -> Iterator[AssetCheckEvaluation]:
    """The last evaluations of those checks whose tables have a newer materialization, of this one."""
    for key in keys:
        materialization = materializations.get(key.asset_key)
        verdict = last_judged(instance, key) if materialization else None
        if verdict is not None and is_of_another(verdict, repeated := of_materialization(verdict, materialization)):
            yield repeated


def says_the_same(first: AssetCheckEvaluation, second: AssetCheckEvaluation) -> bool:
    return _verdict(first) == _verdict(second)


def is_of_another(first: AssetCheckEvaluation | None, second: AssetCheckEvaluation) -> bool:
    """Whether the second evaluation says its materialization, and it is not the one of the first."""
    materialization = second.target_materialization_data
    return materialization is not None and (first is None or first.target_materialization_data != materialization)


def _verdict(check: AssetCheckEvaluation) -> tuple[object, ...]:
    because = check.metadata.get("because")
    return check.passed, not check.passed and check.severity, because.value if because else None
