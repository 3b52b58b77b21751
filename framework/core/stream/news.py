"""Looks at what the pipelines of a stream read, all pipelines of a source at once.

*Guarantee* A message that was committed before a look is news to each pipeline that has not begun a turn since. One that has begun is told
once more if anything came since then.
*Cost* One request for offsets per cluster and look. A catalog is asked only for tables that are read, and not often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias

from framework.base.errors import SluiceError, UnreachableError
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.kafka.cluster import Kafka
from framework.core.kafka.ends import TopicEnds
from framework.core.rules import journal
from framework.core.run.fills import WaitingSize
from framework.core.run.leases import Leases
from framework.core.run.run import is_known_full
from framework.core.stream.marks import Full, PipelineRecords, SourceMarks, looked_at
from framework.plan import Pipeline, TableChanges, Topic

_SOON, _LATER = 0.1, 1.0  # seconds between two looks: while something comes, and else
_TABLES = 10.0  # seconds between two looks at tables, and at rows that wait for rows of other tables

Pipelines: TypeAlias = Callable[[], Sequence[Pipeline]]
"""The pipelines of the plan that a stream has now."""


class Observer(Protocol):
    """Looks at one thing again and again. `observe` returns what the stream should know, or None; `pause`: seconds until the next look."""

    @property
    def source(self) -> str: ...

    @property
    def pause(self) -> float: ...

    def observe(self) -> object | None: ...


class ClusterObserver:
    """Looks at the ends of all topics of a cluster."""

    def __init__(self, name: str, context: Context, pipelines: Pipelines) -> None:
        self.source, self.pause = f"cluster {name}", _LATER
        self._name, self._context, self._pipelines = name, context, pipelines
        self._ends = TopicEnds()
        self._last: Mapping[str, Hashable] = {}

    def observe(self) -> SourceMarks | None:
        readers = [pipeline for pipeline in self._pipelines() if self._read_by(pipeline)]
        if not readers:
            return None
        try:
            kafka = self._context.kafka(readers[0])
            assert isinstance(kafka, Kafka)
            ends = self._ends.now(kafka, (topic for pipeline in readers for topic in self._read_by(pipeline)))
        except UnreachableError as error:
            if not error.system:
                raise
            return SourceMarks(self.source, {}, error)
        marks = {
            pipeline.name: tuple(tuple(ends.get(topic.kafka_name, {}).items()) for topic in self._read_by(pipeline))
            for pipeline in readers
        }
        self.pause = _SOON if marks != self._last else _LATER
        self._last = marks
        return SourceMarks(self.source, marks)

    def _read_by(self, pipeline: Pipeline) -> list[Topic]:
        return [topic for topic in pipeline.topics if topic.cluster.name == self._name]


class CatalogObserver:
    """Looks at the tables of a catalog that pipelines read."""

    def __init__(self, name: str, pipelines: Pipelines) -> None:
        self.source, self.pause = f"catalog {name}", _TABLES
        self._name, self._pipelines = name, pipelines

    def observe(self) -> SourceMarks:
        marks: dict[str, Hashable] = {}
        for pipeline in self._pipelines():
            if tables := [table for table in looked_at(pipeline) if table.catalog.name == self._name]:
                moment = time.monotonic() if pipeline.rows_wait else None
                marks[pipeline.name] = (moment, *map(_file, tables))
        return SourceMarks(self.source, marks)


def _file(table: TableChanges) -> str:
    """The newest metadata file of a table; empty where its catalog does not answer, as the next turn says."""
    try:
        table_metadata = metadata.read(table.catalog, table.identifier)
    except SluiceError:
        return ""
    return table_metadata.file if table_metadata else ""


class RecordObserver:
    """Looks at the records of pipelines, and takes the leases of those that nobody else has."""

    source: ClassVar[str] = "records"
    pause: ClassVar[float] = _LATER

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines, self._leases = pipelines, Leases()

    def observe(self) -> PipelineRecords:
        by_journal = {pipeline.journal_name: pipeline.name for pipeline in self._pipelines()}
        owners = self._leases.keep(by_journal)
        return PipelineRecords(
            {name: journal.read(journal_name) for journal_name, name in by_journal.items()},
            {by_journal[journal_name]: owner for journal_name, owner in owners.items()},
        )

    def leave(self) -> None:
        """Gives up all leases."""
        self._leases.keep(())


class FillObserver:
    """Looks whether so much waits for a pipeline that it has a turn before its time."""

    source: ClassVar[str] = "sizes"
    pause: ClassVar[float] = _TABLES

    def __init__(self, context: Context, pipelines: Pipelines) -> None:
        self._pipelines, self._sizes = pipelines, WaitingSize(context)

    def observe(self) -> Full:
        with_size = (pipeline for pipeline in self._pipelines() if pipeline.run.after)
        return Full(tuple(pipeline.name for pipeline in with_size if is_known_full(pipeline, self._sizes.full)))


def observer_of(source: str, context: Context, pipelines: Pipelines) -> Observer:
    """The observer of a source that `sources` names."""
    kind, _, name = source.partition(" ")
    return ClusterObserver(name, context, pipelines) if kind == "cluster" else CatalogObserver(name, pipelines)
