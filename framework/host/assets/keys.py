"""The keys of a plan's assets: Sluice's own names, or those that a translator chose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dagster import AssetKey

from framework.plan import Pipeline, TableChanges, Topic
from framework.plan.export import Export


@dataclass(frozen=True)
class AssetKeys:
    chosen: Mapping[AssetKey, AssetKey] = field(default_factory=dict)  # by Sluice's own key

    def topic(self, topic: Topic) -> AssetKey:
        return self.of("kafka", topic.cluster.name, topic.kafka_name)

    def table(self, pipeline: Pipeline) -> AssetKey:
        return self.of(pipeline.table.catalog.name, pipeline.table.namespace, pipeline.table.name)

    def bad_rows(self, pipeline: Pipeline) -> AssetKey:
        return self.of(pipeline.table.catalog.name, *pipeline.table.bad_rows.split("."))

    def written(self, pipeline: Pipeline) -> Iterator[AssetKey]:
        """The assets that a run of the pipeline writes."""
        yield self.table(pipeline)
        if pipeline.bad_rows != "drop":
            yield self.bad_rows(pipeline)

    def source(self, source: TableChanges) -> AssetKey:
        return self.of(source.catalog.name, *source.identifier.split("."))

    def export(self, export: Export) -> AssetKey:
        return self.of("exports", export.name)

    def of(self, *path: str) -> AssetKey:
        own_key = AssetKey(list(path))
        return self.chosen.get(own_key, own_key)
