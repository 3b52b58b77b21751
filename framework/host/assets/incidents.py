"""Incidents of a Dagster project: runs that failed, and checks that fail."""

from __future__ import annotations

from dataclasses import dataclass

from dagster import AssetCheckEvaluation, AssetCheckKey, DagsterEventType, DagsterInstance, DagsterRun

_LONGEST_TEXT = 2000  # characters
_CHECK = "check/"  # the beginning of the keys of checks


@dataclass(frozen=True, kw_only=True)
class DagsterIncident:
    """A failed run, or a check that fails or, with `is_over`, passes again. `key` is the same from its beginning to its end; `title` is one
    line, `text` the error or the check's description."""

    key: str
    title: str
    text: str
    is_over: bool = False
    run_id: str | None = None
    asset: str | None = None
    check: str | None = None


def of_check(key: AssetCheckKey, evaluation: AssetCheckEvaluation) -> DagsterIncident:
    """The incident that a check fails."""
    asset = key.asset_key.to_user_string()
    return DagsterIncident(
        key=key_of(key), title=f"the check {key.name} of {asset} fails", text=(evaluation.description or "")[:_LONGEST_TEXT],
        asset=asset, check=key.name,
    )  # fmt: skip


def key_of(key: AssetCheckKey) -> str:
    return f"{_CHECK}{key.asset_key.to_user_string()}/{key.name}"


def over(key: str) -> DagsterIncident:
    """The end of the incident of a check."""
    asset, _, check = key.removeprefix(_CHECK).rpartition("/")
    return DagsterIncident(
        key=key, title=f"the check {check} of {asset} passes again", text="", is_over=True, asset=asset, check=check
    )


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
