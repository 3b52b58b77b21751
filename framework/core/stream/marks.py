"""The news that a stream gets: looks at topics and tables, the records of pipelines, and what others do with them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from framework.base.errors import UnreachableError
from framework.core.rules.journal import RunRecord
from framework.plan import Pipeline, TableChanges


@dataclass(frozen=True)
class SourceMarks:
    """One look at a source: a mark for each pipeline that reads it, which changes as what it reads does. None of a source that is away."""

    source: str
    marks: Mapping[str, Hashable]
    away: UnreachableError | None = None


@dataclass(frozen=True)
class PipelineRecords:
    """The records of pipelines, as people and other processes have changed them. `owners`: other processes that stream them."""

    records: Mapping[str, RunRecord]
    owners: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Full:
    """The names of pipelines for which much waits."""

    names: tuple[str, ...]


def sources(pipeline: Pipeline) -> frozenset[str]:
    """The names of what is looked at for a pipeline."""
    clusters = (f"cluster {topic.cluster.name}" for topic in pipeline.topics)
    return frozenset((*clusters, *(f"catalog {table.catalog.name}" for table in looked_at(pipeline))))


def looked_at(pipeline: Pipeline) -> Sequence[TableChanges]:
    """The tables whose changes are news. Those that are joined matter to rows that wait for theirs."""
    return (*pipeline.read_tables, *(pipeline.looked_up if pipeline.rows_wait else ()))
