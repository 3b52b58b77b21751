"""Exports as assets: each writes the file of the last complete window, or of the window that the launchpad names."""

# Without `from __future__ import annotations`: Dagster reads the type of a step's context.
from collections.abc import Iterator
from datetime import datetime, timezone

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    Failure,
    Field,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    multi_asset,
    schedule,
)

from framework.base import hints, iso_times
from framework.base.errors import SluiceError
from framework.features.export import window as windows
from framework.features.export.notify import notify
from framework.features.export.write import ExportDone, write
from framework.host.assets import dead_runs, default_status, run_outcomes
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.translator import Assets
from framework.plan import SecretStore
from framework.plan.export import Export

_WINDOW = "window"


def asset(export: Export, assets: Assets, secrets: SecretStore) -> AssetsDefinition:
    window_field = Field(str, default_value="", description="A window, such as 2026-W46; empty: the last complete one.")

    @multi_asset(
        name=_name(export, assets),
        specs=[assets.export(export)],
        config_schema={_WINDOW: window_field} if export.window else None,
    )
    def run(context: AssetExecutionContext) -> Iterator[MaterializeResult[None]]:
        dead_runs.mark(context.instance, context.run.run_id)
        moment = datetime.now(timezone.utc)
        asked_window = context.op_execution_context.op_config[_WINDOW] if export.window else ""
        try:
            done = write(export, windows.chosen(export, asked_window, moment), moment, secrets)
            yield _result(assets.keys.export(export), done)
            for sent in notify(export, done, secrets):
                context.log.info(f"{done.record.file}: {sent}")
        except SluiceError as error:
            says = hints.of_environment(str(error), export.pipeline.environment)
            run_outcomes.retry(context, error, says)
            raise Failure(says, allow_retries=False) from None

    return run


def _name(export: Export, assets: Assets) -> str:
    return assets.named(f"Export_{export.name}")  # a capital letter, which no pipeline's name has


def _result(key: AssetKey, done: ExportDone) -> MaterializeResult[None]:
    record = done.record
    return MaterializeResult(
        asset_key=key,
        metadata={
            "file": MetadataValue.path(record.file),
            "window": record.window or "the whole table",
            "snapshot": str(record.snapshot),
            "dagster/row_count": record.rows,
            "bytes": record.bytes,
            "sha256": record.sha256,
            "replaces": f"the file of {iso_times.of_text(done.before.at)}, {done.before.rows:,} rows"
            if done.before
            else "nothing",
        },
    )


def schedule_of(export: Export, assets: Assets, status: DefaultStatus) -> ScheduleDefinition:
    """Each tick writes the window that was complete at its own time, also where it comes late."""
    name = _name(export, assets)

    @schedule(
        export.schedule or "", name=f"{name}_schedule",
        target=AssetSelection.assets(assets.keys.export(export)), execution_timezone="UTC",
        default_status=default_status.of_schedules(status), description=f"Writes {export.name} at {export.schedule} (UTC).",
    )  # fmt: skip
    def ask(context: ScheduleEvaluationContext) -> RunRequest:
        if not export.window:
            return RunRequest()
        complete = windows.chosen(export, "", context.scheduled_execution_time)
        return RunRequest(run_config={"ops": {name: {"config": {_WINDOW: complete.name if complete else ""}}}})

    return ask
