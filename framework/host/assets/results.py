"""Dagster's record of a table after a run: a materialization if rows were committed, otherwise an observation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DataVersion,
    EventLogRecord,
    MaterializeResult,
    MetadataValue,
)

# An event of no step takes a data version only as this tag.
from dagster._core.definitions.data_version import DATA_VERSION_TAG

# Dagster's only mark of an output that is no materialization.
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION

from framework.core.follow.follow import Followed
from framework.core.iceberg import metadata, table_state
from framework.core.publish.batch import Batch
from framework.core.rules.work import Work
from framework.host.assets import asset_specs
from framework.host.assets.keys import AssetKeys
from framework.host.assets.told import Told
from framework.operations.metrics import values_for_dagster, values_of_table, values_of_work
from framework.operations.observe.progress import PipelineProgress
from framework.operations.observe.status import Status
from framework.plan import Pipeline

Result = MaterializeResult[Any]


def committed(keys: AssetKeys, status: Status, told: Told, bad: Counter[str]) -> Iterator[Result]:
    """The results for the table and, if there are new ones, its bad rows. The version of each is its snapshot."""
    pipeline = status.pipeline
    lineage = {"dagster/column_lineage": asset_specs.lineage_of(pipeline, keys)}
    waited = {} if told.waited is None else {"lag_messages_at_start": told.waited}
    table_metadata = numbers(status, told.work) | waited | lineage
    version = DataVersion(str(told.batches[-1].snapshot))
    yield MaterializeResult(asset_key=keys.table(pipeline), metadata=table_metadata, data_version=version)
    if pipeline.bad_rows == "drop":
        return
    key = keys.bad_rows(pipeline)
    if not bad:
        yield nothing_new(key)
        return
    by_reason = "\n".join(f"- {count:,} {message}" for message, count in bad.most_common(20))
    reasons: dict[str, Any] = {
        "new": sum(bad.values()),
        "dagster/row_count": status.progress.bad_rows,
        "reasons": MetadataValue.md(by_reason),
    }
    table = metadata.read(pipeline.table.catalog, pipeline.table.bad_rows)
    main = table.main if table else None
    yield MaterializeResult(asset_key=key, metadata=reasons, data_version=DataVersion(str(main["snapshot-id"])) if main else None)


def event(key: AssetKey, metadata_: Mapping[str, Any] | None, version: str) -> AssetMaterialization:
    """A materialization as an event, of a step that failed or of no run."""
    return AssetMaterialization(key, metadata=metadata_, tags={DATA_VERSION_TAG: version})


def version_of(record: EventLogRecord | None) -> str | None:
    """The version of the data that a recorded materialization made."""
    materialization = record.asset_materialization if record else None
    return (materialization.tags or {}).get(DATA_VERSION_TAG) if materialization else None


def has_rows_of(record: EventLogRecord | None, progress: PipelineProgress) -> bool:
    """Whether a recorded materialization has the batches and the number of rows of now: then only files were rewritten since."""
    materialization = record.asset_materialization if record else None
    values = {name: entry.value for name, entry in materialization.metadata.items()} if materialization else {}
    batch = progress.position.batch if progress.position else None
    return (values.get("batch"), values.get("dagster/row_count")) == (str(batch), progress.rows)


def follower_records(keys: AssetKeys, followed: Followed) -> Iterator[AssetMaterialization]:
    """The record of what a follower has shown in a run: of a topic that gets the rows of a table."""
    if followed.rows and followed.follower.asset:
        yield AssetMaterialization(keys.of(*followed.follower.asset), description=followed.line, metadata={"rows": followed.rows})


def nothing_new(key: AssetKey) -> Result:
    """An output without a materialization: later assets in the same run are not skipped, and it starts no other run.
    The key is Dagster's own mark of an output that an observation describes."""
    return MaterializeResult(asset_key=key, metadata={SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True})


def up_to_date(keys: AssetKeys, status: Status, says: str) -> AssetObservation:
    return AssetObservation(keys.table(status.pipeline), description=says, metadata=numbers(status))


def numbers(status: Status, work: Work | None = None) -> dict[str, Any]:
    """The metadata of a table, which Dagster plots over time: its metrics, with those of the `work` that a run has done."""
    watched = status.progress
    values = (values_of_work(work) if work else {}) | values_of_table(status)
    entries: dict[str, Any] = {**values_for_dagster(values), "dagster/uri": watched.location}
    if watched.position is not None:
        # As text: a plot of it has no meaning, and it has more digits than a plot keeps.
        entries["snapshot"] = MetadataValue.text(str(watched.position.snapshot))
        entries["batch"] = MetadataValue.text(str(watched.position.batch))
        entries["offsets"] = MetadataValue.json(dict(watched.position.ends))
    return entries


def bad_rows(pipeline: Pipeline, batches: Sequence[Batch]) -> Counter[str]:
    """This run's bad rows by their message."""
    if not any(batch.bad for batch in batches) or pipeline.bad_rows == "drop":
        return Counter()
    table = table_state.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return Counter()
    written = table.scan(row_filter=f"batch >= {batches[0].number}", selected_fields=("message",))
    return Counter(written.to_arrow().column("message").to_pylist())
