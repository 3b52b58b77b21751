"""A plan as Dagster assets: a topic is an external asset, a pipeline's table and its bad rows are one step. Nothing else knows Dagster.

Limit: one process and one Spark session per run; several runs of one table are safe, and the later ones find nothing to do.
"""

import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    CodeReferencesMetadataValue,
    DefaultSensorStatus,
    Definitions,
    Failure,
    FreshnessPolicy,
    InitResourceContext,
    LocalFileCodeReference,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    TableColumn,
    TableSchema,
    in_process_executor,
    multi_asset,
    sensor,
)
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES
from dagster_pyspark import LazyPySparkResource

from framework.engine import loop, session
from framework.engine.batch import Batch, nothing_waits
from framework.engine.context import Context
from framework.errors import SluiceError, Where
from framework.plan.model import Column, Pipeline, Plan, Topic


class SparkOfARun(LazyPySparkResource):
    """Dagster's own lazy session, which ends with the run."""

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        if self._spark_session is not None:
            self._spark_session.stop()
            self._spark_session = None


def definitions(specs: Path, environment: str | None = None) -> Definitions:
    """What Dagster loads; a spec's problems are raised with their places."""
    from framework.plan.passes import make
    from framework.spec import without_collection

    with without_collection():
        plan = make(specs, environment or os.environ.get("SLUICE_ENV", "local"))
        return Definitions(
            assets=[*(_topic(topic) for topic in plan.topics), *(_table(plan, pipeline) for pipeline in plan.pipelines)],
            sensors=[_sensor(plan, pipeline) for pipeline in plan.pipelines if pipeline.every],
            resources={"spark": SparkOfARun(spark_config=session.settings(plan))},
            executor=in_process_executor,
        )


def topic_key(topic: Topic) -> AssetKey:
    return AssetKey(["kafka", topic.cluster.name, topic.kafka_name])


def table_key(pipeline: Pipeline) -> AssetKey:
    return AssetKey([pipeline.table.catalog.name, pipeline.table.namespace, pipeline.table.name])


def bad_rows_key(pipeline: Pipeline) -> AssetKey:
    return AssetKey([pipeline.table.catalog.name, *pipeline.table.bad_rows.split(".")])


def _deps(pipeline: Pipeline) -> list[AssetKey]:
    if pipeline.source:
        return [AssetKey([pipeline.source.catalog.name, *pipeline.source.identifier.split(".")])]
    return [topic_key(topic) for topic in pipeline.topics]


def _topic(topic: Topic) -> AssetSpec:
    return AssetSpec(
        topic_key(topic),
        description=topic.doc or None,
        group_name="topics",
        kinds={"kafka"},
        metadata={**_code(topic.where), "dagster/column_schema": _schema(topic.columns)},
    )


def _table(plan: Plan, pipeline: Pipeline) -> AssetsDefinition:
    specs = [_table_spec(pipeline)]
    if pipeline.bad_rows != "drop":
        specs.append(_bad_rows_spec(pipeline))

    @multi_asset(name=f"{pipeline.name}", specs=specs, pool=f"table_{pipeline.name}", required_resource_keys={"spark"})
    def run(context: AssetExecutionContext) -> Iterator[MaterializeResult[Any]]:
        engine = Context(plan, spark=lambda: _session(context, plan))
        batches: list[Batch] = []
        try:
            for batch in loop.batches(engine, pipeline):
                batches.append(batch)
                context.log.info(f"batch {batch.number}: {batch.rows:,} rows, {batch.bad:,} bad, {batch.seconds:.1f} s")
        except SluiceError as error:
            # A person must do something first; trying again would find the same.
            raise Failure(str(error), allow_retries=False) from None
        yield from _results(pipeline, batches)

    return run


def _session(context: AssetExecutionContext, plan: Plan) -> Any:
    session.prepare(plan)
    return context.resources.spark.spark_session


def _sensor(plan: Plan, pipeline: Pipeline) -> SensorDefinition:
    """Asks as often as the spec's `run` says whether messages wait, and asks for a run if they do and none is under way."""
    tags = {"sluice/pipeline": pipeline.name}
    engine = Context(plan)

    @sensor(
        name=f"{pipeline.name}_waits",
        target=AssetSelection.assets(table_key(pipeline)).required_multi_asset_neighbors(),
        minimum_interval_seconds=pipeline.every,
        default_status=DefaultSensorStatus.RUNNING,
    )
    def ask(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        if context.instance.get_runs_count(RunsFilter(tags=tags, statuses=[*IN_PROGRESS_RUN_STATUSES])):
            return SkipReason("a run is under way")
        try:
            if nothing_waits(engine, pipeline):
                return SkipReason("nothing waits")
        except SluiceError as error:
            return SkipReason(str(error))
        return RunRequest(tags=tags)

    return ask


def _table_spec(pipeline: Pipeline) -> AssetSpec:
    table = pipeline.table
    fresh = pipeline.fresh_within and FreshnessPolicy.time_window(
        fail_window=timedelta(seconds=pipeline.fresh_within),
        warn_window=timedelta(seconds=pipeline.warn_after) if pipeline.warn_after else None,
    )
    return AssetSpec(
        table_key(pipeline),
        deps=_deps(pipeline),
        description=pipeline.doc or None,
        group_name=table.namespace,
        kinds={"iceberg", "spark"},
        owners=[pipeline.owner] if pipeline.owner else None,
        tags=dict(pipeline.tags),
        freshness_policy=fresh or None,
        code_version=pipeline.spec,
        metadata={
            **_code(pipeline.where),
            "dagster/table_name": f"{table.catalog.name}.{table.identifier}",
            "dagster/column_schema": _schema(table.columns),
        },
    )


def _bad_rows_spec(pipeline: Pipeline) -> AssetSpec:
    from framework.engine.bad_rows import COLUMNS

    return AssetSpec(
        bad_rows_key(pipeline),
        deps=_deps(pipeline),
        description=f"What {pipeline.name} could not read of {', '.join(pipeline.sources)}, with its exact bytes.",
        group_name=pipeline.table.namespace,
        kinds={"iceberg", "spark"},
        owners=[pipeline.owner] if pipeline.owner else None,
        metadata={
            **_code(pipeline.where),
            "dagster/table_name": f"{pipeline.table.catalog.name}.{pipeline.table.bad_rows}",
            "dagster/column_schema": _schema(COLUMNS),
        },
    )


def _results(pipeline: Pipeline, batches: list[Batch]) -> Iterator[MaterializeResult[Any]]:
    from framework.engine import look

    counts = {
        "batches": len(batches),
        "rows": sum(batch.rows for batch in batches),
        "bad_rows": sum(batch.bad for batch in batches),
        "filtered": sum(batch.filtered for batch in batches),
        "waiting_messages": batches[-1].waiting if batches else 0,
        "seconds": round(sum(batch.seconds for batch in batches), 3),
    }
    metadata: dict[str, Any] = dict(counts)
    phases: dict[str, float] = {}
    for phase, seconds in (each for batch in batches for each in batch.phases):
        phases[phase] = round(phases.get(phase, 0.0) + seconds, 3)
    metadata |= {f"seconds_{phase}": seconds for phase, seconds in phases.items()}
    table = look.table(pipeline.table.catalog, pipeline.table.identifier)
    if table is not None and (snapshot := table.current_snapshot()) is not None:
        summary: Mapping[str, str] = snapshot.summary.additional_properties if snapshot.summary else {}
        metadata["dagster/row_count"] = int(summary.get("total-records", 0))
        metadata["files"] = int(summary.get("total-data-files", 0))
        metadata["bytes"] = int(summary.get("total-files-size", 0))
        metadata["snapshot"] = MetadataValue.text(str(snapshot.snapshot_id))
        metadata["dagster/uri"] = table.metadata.location
    yield MaterializeResult(table_key(pipeline), metadata=metadata)
    if pipeline.bad_rows != "drop":
        bad = look.table(pipeline.table.catalog, pipeline.table.bad_rows)
        yield MaterializeResult(bad_rows_key(pipeline), metadata={"new": counts["bad_rows"], "dagster/row_count": _rows(bad)})


def _rows(table: Any) -> int:
    snapshot = table.current_snapshot() if table is not None else None
    return int(snapshot.summary.additional_properties.get("total-records", 0)) if snapshot and snapshot.summary else 0


def _schema(columns: tuple[Column, ...]) -> TableSchema:
    return TableSchema([TableColumn(column.name, str(column.type), column.doc or None) for column in columns])


def _code(where: Where) -> dict[str, CodeReferencesMetadataValue]:
    reference = LocalFileCodeReference(file_path=str(Path(where.file).absolute()), line_number=where.line, label=str(where))
    return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}
