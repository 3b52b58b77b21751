"""Users' choice of keys, groups, tags, owners and automation of the assets, and the resulting asset specs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from dagster import AssetKey, AssetSpec, DagsterInvalidDefinitionError, OpDefinition

from framework.base.errors import SluiceError
from framework.host.assets import asset_specs, translated
from framework.host.assets.keys import AssetKeys
from framework.plan import Pipeline, Plan, Topic
from framework.plan.export import Export


@dataclass(frozen=True, kw_only=True)
class SluiceAsset:
    """A thing that becomes an asset, with its spec if nobody chooses another. `also` is a follower, `broken` a file with problems."""

    type: Literal["topic", "table", "bad_rows", "export", "also", "broken"]
    name: str  # as the specs call it: of the topic, the pipeline, the export; of the file
    spec: AssetSpec
    topic: Topic | None = None
    pipeline: Pipeline | None = None  # of a table and its bad rows, and of an export; None if its spec has problems
    export: Export | None = None


class SluiceTranslator:
    """Derive from it to choose what the assets look like; `asset.spec` is changed by its own `replace_attributes` and
    `merge_attributes`. A key that is chosen here is also the one that other assets depend on, and that runs, checks and sensors name.
    Dependencies can be added. Partitions are refused: a run loads all waiting messages."""

    def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
        return asset.spec


class Assets:
    """The asset specs of a plan, as its translator has them."""

    def __init__(self, plan: Plan, translator: SluiceTranslator | None = None, name: str = "") -> None:
        if not re.fullmatch(r"[A-Za-z0-9_]*", name):
            raise SluiceError("bad-name", f"`{name}` cannot stand before names in Dagster", "write letters, digits and _ only")
        self.exports: Sequence[Export] = [document.value for document in plan.documents_of("export")]
        self._plan, self._translator, self._name = plan, translator or SluiceTranslator(), name
        self.spark = self.named("sluice_spark")
        self.keys = AssetKeys()
        if translator:
            # Once with the keys of Sluice, which tells those that were chosen; from then on, others depend on these.
            self.keys = AssetKeys(self._chosen())

    def named(self, base: str) -> str:
        """The name of a step, a job, a sensor or a resource: one may not be twice in a code location."""
        name = f"{self._name}_{base}" if self._name else base
        return f"{name}_" if _is_reserved(name) else name

    def of(self, asset: SluiceAsset) -> AssetSpec:
        spec = self._translator.get_asset_spec(asset)
        return translated.require_valid(asset, spec, self.keys.chosen.get(asset.spec.key))

    def topics(self, pipelines: Collection[Pipeline] | None = None) -> list[AssetSpec]:
        """The topics and what else shows tables: all, or those of these pipelines."""
        selected_keys = None if pipelines is None else {key for pipeline in pipelines for key in asset_specs.around(pipeline)}
        return [self.of(asset) for asset in self._topics() if selected_keys is None or asset.spec.key in selected_keys]

    def tables(self, pipeline: Pipeline) -> list[AssetSpec]:
        """The table, and its bad rows where they are kept."""
        return [self.of(asset) for asset in self._tables(pipeline)]

    def export(self, export: Export) -> AssetSpec:
        return self.of(self._export(export))

    def _chosen(self) -> dict[AssetKey, AssetKey]:
        chosen: dict[AssetKey, AssetKey] = {}
        owners: dict[AssetKey, str] = {}
        for asset in self._all():
            key = chosen[asset.spec.key] = self.of(asset).key
            owner = f"the {asset.type} `{asset.name}`"
            if key in owners:
                hint = "keys need parts by which assets differ, such as those of `asset.spec.key`"
                raise SluiceError("bad-translation", f"{owners[key]} and {owner} get one key, {key.to_user_string()}", hint)
            owners[key] = owner
        return chosen

    def _all(self) -> Iterator[SluiceAsset]:
        yield from self._topics()
        for pipeline in self._plan.pipelines:
            yield from self._tables(pipeline)
        for export in self.exports:
            yield self._export(export)

    def _topics(self) -> Iterable[SluiceAsset]:
        # Two documents may describe one topic in Kafka, which is one asset.
        assets: dict[AssetKey, SluiceAsset] = {}
        for topic in self._plan.topics:
            spec = asset_specs.topic(topic, self._plan.pipelines, self.keys)
            assets.setdefault(spec.key, SluiceAsset(type="topic", name=topic.name, spec=spec, topic=topic))
        for follower in (follower for pipeline in self._plan.pipelines for follower in pipeline.also if follower.asset):
            spec = asset_specs.follower(follower, self._plan.pipelines, self.keys)
            assets.setdefault(spec.key, SluiceAsset(type="also", name=follower.title, spec=spec))
        return assets.values()

    def _tables(self, pipeline: Pipeline) -> Iterator[SluiceAsset]:
        spec = asset_specs.table(pipeline, self.keys)
        yield SluiceAsset(type="table", name=pipeline.name, spec=spec, pipeline=pipeline)
        if pipeline.bad_rows != "drop":
            spec = asset_specs.bad_rows(pipeline, self.keys)
            yield SluiceAsset(type="bad_rows", name=pipeline.name, spec=spec, pipeline=pipeline)

    def _export(self, export: Export) -> SluiceAsset:
        spec = asset_specs.export(export, self.keys)
        return SluiceAsset(type="export", name=export.name, spec=spec, export=export, pipeline=export.pipeline)


@cache
def _is_reserved(name: str) -> bool:
    """Whether Dagster refuses the name for a step, as it does Python's keywords and a few words."""
    try:
        OpDefinition(compute_fn=lambda: None, name=name)
    except DagsterInvalidDefinitionError:
        return True
    return False
