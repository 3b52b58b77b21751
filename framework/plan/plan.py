"""The plan: all that the specs say, as it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.base.errors import Problem, Where
from framework.plan.catalog import Catalog
from framework.plan.pipeline import Pipeline
from framework.plan.schema import Schema
from framework.plan.topic import Cluster, SecretStore, Topic


@dataclass(frozen=True)
class Engine:
    master: str = "local[*]"
    memory: str = "4g"
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedDocument:
    """A document whose kind has no field of its own in a plan. `value` comes from the document's kind, `says` are its lines in a plan."""

    kind: str
    name: str
    where: Where
    value: Any
    says: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    environment: str
    engine: Engine
    secrets: SecretStore
    clusters: tuple[Cluster, ...]
    catalogs: tuple[Catalog, ...]
    topics: tuple[Topic, ...]
    pipelines: tuple[Pipeline, ...]
    documents: tuple[PlannedDocument, ...] = ()
    # Plans the same specs again with the registry's current schemas and, for each topic, schemas of other subjects.
    again: Callable[[Mapping[str, Mapping[int, Schema | None]]], LaterPlan] | None = field(
        default=None, compare=False, repr=False
    )

    def pipeline(self, name: str) -> Pipeline | None:
        return next((pipeline for pipeline in self.pipelines if pipeline.name == name), None)

    def documents_of(self, kind: str) -> tuple[PlannedDocument, ...]:
        return tuple(document for document in self.documents if document.kind == kind)


@dataclass(frozen=True)
class LaterPlan:
    """A plan of the same specs at a later time, and the problems of the specs. No problem concerns the `runnable` pipelines."""

    plan: Plan
    problems: tuple[Problem, ...]
    runnable: tuple[Pipeline, ...]
