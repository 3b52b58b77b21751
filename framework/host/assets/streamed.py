"""Tables that `sluice stream` keeps up to date, in Dagster: what it commits is recorded as a materialization without a run, so that plots,
checks and the assets behind go on.

*Guarantee* A table has at most one such record for each tick of the sensor that asks, and none where nothing was committed.
*Limit* An expectation keeps its last evaluation by a run.
"""

from __future__ import annotations

from collections.abc import Iterable

from dagster import AssetKey, DagsterInstance, EventLogRecord

from framework.core.run import leases
from framework.host.assets import asset_specs, results
from framework.host.assets.check_records import RUNLESS, Materialization
from framework.host.assets.keys import AssetKeys
from framework.operations.observe.status import Status


def materialize(instance: DagsterInstance, keys: AssetKeys, statuses: Iterable[Status]) -> dict[AssetKey, Materialization]:
    """Records what streams have committed since the last materialization of each table. Returns the newest one of each table that is
    streamed. Recorded at once: what a sensor returns is recorded later, and checks have to name it."""
    by_key: dict[AssetKey, Materialization] = {}
    for status in statuses:
        pipeline, position = status.pipeline, status.progress.position
        key = keys.table(pipeline)
        newest_record = _newest_record(instance, key)
        is_streamed = newest_record is not None and newest_record.run_id == RUNLESS  # maybe by one that has ended since
        if position is None or not position.batch or not (is_streamed or leases.owner(pipeline.journal_name)):
            continue
        version = str(position.snapshot)
        if results.version_of(newest_record) != version and not results.has_rows_of(newest_record, status.progress):
            lineage = {"dagster/column_lineage": asset_specs.lineage_of(pipeline, keys)}
            numbers = results.numbers(status)
            instance.report_runless_asset_event(results.event(key, numbers | lineage, version))
            newest_record = _newest_record(instance, key)
        if newest_record is not None:
            by_key[key] = Materialization(
                storage_id=newest_record.storage_id, run_id=newest_record.run_id, timestamp=newest_record.timestamp
            )
    return by_key


def _newest_record(instance: DagsterInstance, key: AssetKey) -> EventLogRecord | None:
    return next(iter(instance.fetch_materializations(key, limit=1).records), None)
