"""Asset specs for topics, tables and bad rows: columns with their lineage, owners, and the line of the spec. Each has Sluice's own key,
and the keys of others as a translator chose them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dagster import (
    AssetKey,
    AssetSpec,
    AutomationCondition,
    CodeReferencesMetadataValue,
    DagsterInvalidDefinitionError,
    LocalFileCodeReference,
    TableColumn,
    TableColumnDep,
    TableColumnLineage,
    TableSchema,
)

from framework.base.errors import Where
from framework.host.assets import freshness
from framework.host.assets.keys import AssetKeys
from framework.plan import BAD_ROW_COLUMNS, Column, Follower, Pipeline, TableChanges, Topic
from framework.plan.export import Export
from framework.plan.lineage import by_source, lineage

OWN_KEYS = AssetKeys()
_NOT_IN_TAGS, _LONGEST_TAG = re.compile(r"[^A-Za-z0-9_.-]"), 63
_KINDS = {"csv": "csv", "parquet": "parquet", "jsonl": "json"}


def topic(topic: Topic, pipelines: Iterable[Pipeline], keys: AssetKeys) -> AssetSpec:
    """A topic, also one to which some of these pipelines send their rows."""
    return AssetSpec(
        OWN_KEYS.topic(topic),
        deps=_shown_in(OWN_KEYS.topic(topic), pipelines, keys),
        description=topic.doc or None,
        group_name="topics",
        kinds={"kafka", topic.value},
        metadata={**code(topic.where), "dagster/column_schema": _schema(topic.columns), "partitions": topic.partitions},
    )


def follower(follower: Follower, pipelines: Iterable[Pipeline], keys: AssetKeys) -> AssetSpec:
    """A system in which these pipelines show their tables."""
    key = AssetKey(list(follower.asset))
    return AssetSpec(
        key,
        deps=_shown_in(key, pipelines, keys),
        description=", ".join(follower.says),
        group_name=f"{follower.type}s",
        kinds={key.path[0]},
        metadata=code(follower.where),
    )


def around(pipeline: Pipeline) -> Iterator[AssetKey]:
    """Sluice's own keys of the topics that a pipeline reads, and of the systems that show its table."""
    yield from map(OWN_KEYS.topic, pipeline.topics)
    yield from (AssetKey(list(follower.asset)) for follower in pipeline.also if follower.asset)


def _shown_in(key: AssetKey, pipelines: Iterable[Pipeline], keys: AssetKeys) -> list[AssetKey]:
    """The tables that are shown in this asset."""
    return [
        keys.table(pipeline) for pipeline in pipelines if key in [AssetKey(list(follower.asset)) for follower in pipeline.also]
    ]


def table(pipeline: Pipeline, keys: AssetKeys) -> AssetSpec:
    into = pipeline.table
    return AssetSpec(
        OWN_KEYS.table(pipeline),
        deps=_inputs(pipeline, keys),
        description=_description(pipeline),
        group_name=into.namespace,
        kinds={"iceberg", "spark"},
        owners=_owners(pipeline),
        tags=_tags(pipeline),
        code_version=pipeline.spec,
        metadata={
            **code(pipeline.where),
            "dagster/table_name": f"{into.catalog.name}.{into.identifier}",
            "dagster/column_schema": _schema(into.readable, lineage(pipeline)),
            "dagster/column_lineage": lineage_of(pipeline, keys),
        },
        automation_condition=_automation(pipeline),
        freshness_policy=freshness.of_table(pipeline),
    )


def bad_rows(pipeline: Pipeline, keys: AssetKeys) -> AssetSpec:
    return AssetSpec(
        OWN_KEYS.bad_rows(pipeline),
        deps=_inputs(pipeline, keys),
        description=f"What {pipeline.name} could not read of {', '.join(pipeline.sources)}, with its exact bytes.",
        group_name=pipeline.table.namespace,
        kinds={"iceberg", "spark"},
        owners=_owners(pipeline),
        metadata={
            **code(pipeline.where),
            "dagster/table_name": f"{pipeline.table.catalog.name}.{pipeline.table.bad_rows}",
            "dagster/column_schema": _schema(BAD_ROW_COLUMNS),
        },
        automation_condition=_automation(pipeline),
    )


def export(export: Export, keys: AssetKeys) -> AssetSpec:
    return AssetSpec(
        OWN_KEYS.export(export),
        deps=[keys.table(export.pipeline)],
        description="\n\n".join(part for part in (export.doc, f"```sql\n{export.query}\n```") if part),
        group_name="exports",
        kinds={"duckdb", _KINDS[export.format]},
        metadata={**code(export.where), "file": export.to},
        freshness_policy=freshness.of_export(export),
    )


def _owners(pipeline: Pipeline) -> list[str] | None:
    """The owner of the pipeline, if Dagster accepts the address."""
    return [pipeline.owner] if pipeline.owner and _is_accepted(owners=[pipeline.owner]) else None


def _tags(pipeline: Pipeline) -> dict[str, str]:
    """The pipeline's tags, cut to Dagster's length, with _ in place of characters that Dagster refuses."""

    def fitting(text: str) -> str:
        return _NOT_IN_TAGS.sub("_", text)[:_LONGEST_TAG]

    return {name if _is_accepted(tags={name: ""}) else fitting(name) or "_": fitting(value) for name, value in pipeline.tags}


def _is_accepted(**attributes: Any) -> bool:
    """Whether Dagster accepts an asset with these attributes."""
    try:
        AssetSpec("any", **attributes)
    except DagsterInvalidDefinitionError:
        return False
    return True


def _automation(pipeline: Pipeline) -> AutomationCondition[Any] | None:
    return AutomationCondition.eager() if pipeline.run.on_new_data and pipeline.read_tables else None


def _inputs(pipeline: Pipeline, keys: AssetKeys) -> list[AssetKey]:
    """The pipeline's inputs: its sources, and the tables in which it looks rows up."""
    return list(dict.fromkeys((*_sources(pipeline, keys), *map(keys.source, pipeline.looked_up))))


def _sources(pipeline: Pipeline, keys: AssetKeys) -> list[AssetKey]:
    return [*map(keys.topic, pipeline.topics), *map(keys.source, pipeline.read_tables)]


def _description(pipeline: Pipeline) -> str | None:
    """The description from the spec, the select that is read, and the pipeline's steps."""
    lines = pipeline.select.says if pipeline.select else ()
    select = "\n".join(("```sql", *lines, "```")) if lines else ""
    steps = "\n".join(f"{number}. **{step.name}** {'; '.join(step.says)}" for number, step in enumerate(pipeline.steps, 1))
    return "\n\n".join(part for part in (pipeline.doc, select, steps) if part) or None


def _key(source: Topic | TableChanges, keys: AssetKeys) -> AssetKey:
    return keys.topic(source) if isinstance(source, Topic) else keys.source(source)


def lineage_of(pipeline: Pipeline, keys: AssetKeys) -> TableColumnLineage:
    """The lineage for tools that read it. Dagster's own pages do not show it, so each column's description has it too. Only columns of a
    topic's messages count, since its asset has no others."""
    deps = {
        name: [
            (_key(source, keys), origin)
            for source, origin in places
            if isinstance(source, TableChanges) or origin in [column.name for column in source.columns]
        ]
        for name, places in by_source(pipeline).items()
    }
    return TableColumnLineage({
        name: [TableColumnDep(asset_key=key, column_name=origin) for key, origin in origins] for name, origins in deps.items()
    })  # fmt: skip


def _schema(columns: Iterable[Column], origins: Mapping[str, Collection[str]] | None = None) -> TableSchema:
    """The schema. A column's description names its source columns if they are known and differ from the column itself."""
    columns_of_table = []
    for column in columns:
        sources = set((origins or {}).get(column.name, ()))
        names = ", ".join(f"`{name}`" for name in sorted(sources)) if sources != {column.name} else ""
        says = "; ".join(part for part in (column.doc, f"from {names}" if names else "") if part)
        columns_of_table.append(TableColumn(column.name, str(column.type), says or None))
    return TableSchema(columns_of_table)


def code(where: Where) -> dict[str, Any]:
    reference = LocalFileCodeReference(file_path=str(Path(where.file).absolute()), line_number=where.line, label=str(where))
    return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}
