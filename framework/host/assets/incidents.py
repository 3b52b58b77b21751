"""Incidents of a Dagster project: runs that failed, and checks that fail."""

from __future__ import annotations

from dataclasses import dataclass

from dagster import AssetCheckEvaluation, AssetCheckKey, DagsterEventType, DagsterInstance, DagsterRun

_LONGEST_TEXT = 2000  # characters


@dataclass(frozen=True, kw_only=True)
class DagsterIncident:
    """A failed run, or a check that fails or, with `is_over`, no longer does. `key` is the same from beginning to end; `title` is one
    line, `text` the error or the check's description."""

    key: str
    title: str
    text: str
    is_over: bool = False
    run_id: str | None = None
    asset: str | None = None
    check: str | None = None


def of_check(evaluation: AssetCheckEvaluation) -> DagsterIncident:
    """The incident that a check fails."""
    return _of(evaluation, "fails", is_over=False)


def over(evaluation: AssetCheckEvaluation) -> DagsterIncident:
    """The end of the incident of a check."""
    return _of(evaluation, "passes again" if evaluation.passed else "only warns now", is_over=True)


def _of(evaluation: AssetCheckEvaluation, does: str, is_over: bool) -> DagsterIncident:
    asset = evaluation.asset_key.to_user_string()
    return DagsterIncident(
        key=key_of(evaluation.asset_check_key), title=f"the check {evaluation.check_name} of {asset} {does}",
        text="" if is_over else (evaluation.description or "")[:_LONGEST_TEXT], is_over=is_over, asset=asset, check=evaluation.check_name,
    )  # fmt: skip


def key_of(key: AssetCheckKey) -> str:
    return f"check/{key.asset_key.to_user_string()}/{key.name}"


def of_run(instance: DagsterInstance, run: DagsterRun) -> DagsterIncident:
    """The incident that a run failed."""
    title = f"run {run.run_id[:8]} of {run.job_name} failed"
    return DagsterIncident(key=f"run/{run.run_id}", run_id=run.run_id, title=title, text=_cause(instance, run))


def _cause(instance: DagsterInstance, run: DagsterRun) -> str:
    """The errors of the steps that failed, or why the run did."""
    failed_steps = instance.get_records_for_run(run.run_id, of_type=DagsterEventType.STEP_FAILURE, limit=5).records
    texts = []
    for record in failed_steps or instance.get_records_for_run(run.run_id, of_type=DagsterEventType.RUN_FAILURE, limit=1).records:
        entry = record.event_log_entry
        data = entry.dagster_event.event_specific_data if entry.dagster_event else None
        error = getattr(data, "error", None)
        cause = getattr(error, "cause", None) or error
        message = cause.message.strip() if cause else entry.message
        texts.append(f"{entry.step_key}: {message}" if entry.step_key else message)
    return "\n".join(texts)[:_LONGEST_TEXT]
