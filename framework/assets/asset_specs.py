"""Asset specs for topics, tables and bad rows: keys, columns with their lineage, owners, and the line of the spec."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dagster import (
    AssetKey,
    AssetSpec,
    CodeReferencesMetadataValue,
    LocalFileCodeReference,
    TableColumn,
    TableColumnDep,
    TableColumnLineage,
    TableSchema,
)

from framework.errors import Where
from framework.model import BAD_ROW_COLUMNS, Column, Pipeline, SelectSource, TableSource, Topic
from framework.plan.lineage import lineage


def topic_key(topic: Topic) -> AssetKey:
    return AssetKey(["kafka", topic.cluster.name, topic.kafka_name])


def table_key(pipeline: Pipeline) -> AssetKey:
    return AssetKey([pipeline.table.catalog.name, pipeline.table.namespace, pipeline.table.name])


def bad_rows_key(pipeline: Pipeline) -> AssetKey:
    return AssetKey([pipeline.table.catalog.name, *pipeline.table.bad_rows.split(".")])


def topic(topic: Topic, pipelines: Iterable[Pipeline] = ()) -> AssetSpec:
    """A topic, also one to which some of these pipelines send their rows."""
    return AssetSpec(
        topic_key(topic),
        deps=_shown_in(topic_key(topic), pipelines),
        description=topic.doc or None,
        group_name="topics",
        kinds={"kafka", topic.value},
        metadata={**code(topic.where), "dagster/column_schema": _schema(topic.columns), "partitions": topic.partitions},
    )


def followers(pipelines: Sequence[Pipeline], others: Collection[AssetKey]) -> Iterator[AssetSpec]:
    """What shows tables elsewhere and is none of the others."""
    shown = {AssetKey(list(each.asset)): each for pipeline in pipelines for each in pipeline.also if each.asset}
    for key, follower in shown.items():
        if key not in others:
            yield AssetSpec(
                key, deps=_shown_in(key, pipelines), description=", ".join(follower.says), group_name=f"{follower.type}s",
                kinds={key.path[0]}, metadata=code(follower.where),
            )  # fmt: skip


def _shown_in(key: AssetKey, pipelines: Iterable[Pipeline]) -> list[AssetKey]:
    """The tables that are shown in this asset."""
    return [table_key(each) for each in pipelines if key in [AssetKey(list(follower.asset)) for follower in each.also]]


def table(pipeline: Pipeline) -> AssetSpec:
    into = pipeline.table
    return AssetSpec(
        table_key(pipeline),
        deps=_inputs(pipeline),
        description=_description(pipeline),
        group_name=into.namespace,
        kinds={"iceberg", "spark"},
        owners=[pipeline.owner] if pipeline.owner else None,
        tags=dict(pipeline.tags),
        code_version=pipeline.spec,
        metadata={
            **code(pipeline.where),
            "dagster/table_name": f"{into.catalog.name}.{into.identifier}",
            "dagster/column_schema": _schema(into.columns, lineage(pipeline)),
            "dagster/column_lineage": lineage_of(pipeline),
        },
    )


def bad_rows(pipeline: Pipeline) -> AssetSpec:
    return AssetSpec(
        bad_rows_key(pipeline),
        deps=_inputs(pipeline),
        description=f"What {pipeline.name} could not read of {', '.join(pipeline.sources)}, with its exact bytes.",
        group_name=pipeline.table.namespace,
        kinds={"iceberg", "spark"},
        owners=[pipeline.owner] if pipeline.owner else None,
        metadata={
            **code(pipeline.where),
            "dagster/table_name": f"{pipeline.table.catalog.name}.{pipeline.table.bad_rows}",
            "dagster/column_schema": _schema(BAD_ROW_COLUMNS),
        },
    )


def _inputs(pipeline: Pipeline) -> list[AssetKey]:
    """What it reads: its sources, and the tables in which it looks rows up."""
    return list(dict.fromkeys((*_sources(pipeline), *map(_key, pipeline.looked_up))))


def _key(source: TableSource) -> AssetKey:
    return AssetKey([source.catalog.name, *source.identifier.split(".")])


def _sources(pipeline: Pipeline) -> list[AssetKey]:
    if pipeline.source:
        return list(map(_key, pipeline.source.tables))
    return [topic_key(topic) for topic in pipeline.topics]


def _description(pipeline: Pipeline) -> str | None:
    """The description from the spec, and the pipeline's steps."""
    steps = "\n".join(f"{at}. **{step.name}** {'; '.join(step.says)}" for at, step in enumerate(pipeline.steps, 1))
    return "\n\n".join(part for part in (pipeline.doc, steps) if part) or None


def lineage_of(pipeline: Pipeline) -> TableColumnLineage:
    """The lineage for tools that read it. Dagster's own pages do not show it, so each column's description has it too."""
    sources = _sources(pipeline)
    selected = pipeline.source.tables if isinstance(pipeline.source, SelectSource) else ()
    there = set() if selected else {column.name for column in (pipeline.source or pipeline.topic).columns}
    looked_up = {
        f"{table.identifier}.{column.name}": (_key(table), column.name)
        for table in (*selected, *(join.source for join in pipeline.joins))
        for column in (*table.columns, *table.kafka)
    }
    deps = {
        name: [
            *((key, origin) for key in sources for origin in sorted(origins & there)),
            *(looked_up[each] for each in sorted(origins & set(looked_up))),
        ]
        for name, origins in lineage(pipeline).items()
    }
    return TableColumnLineage({
        name: [TableColumnDep(asset_key=key, column_name=origin) for key, origin in each] for name, each in deps.items()
    })  # fmt: skip


def _schema(columns: Iterable[Column], origins: Mapping[str, Collection[str]] | None = None) -> TableSchema:
    """The schema. A column's description names its source columns if they are known and differ from the column itself."""
    columns_of_table = []
    for column in columns:
        of = set((origins or {}).get(column.name, ()))
        names = ", ".join(f"`{name}`" for name in sorted(of)) if of != {column.name} else ""
        says = "; ".join(part for part in (column.doc, f"from {names}" if names else "") if part)
        columns_of_table.append(TableColumn(column.name, str(column.type), says or None))
    return TableSchema(columns_of_table)


def code(where: Where) -> dict[str, Any]:
    reference = LocalFileCodeReference(file_path=str(Path(where.file).absolute()), line_number=where.line, label=str(where))
    return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}
