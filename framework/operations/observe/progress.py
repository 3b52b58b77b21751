"""The progress of each pipeline: rows that landed and messages that wait. Reads Kafka and the catalog; changes nothing; starts no JVM."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Generic, TypeVar

from framework.base.errors import CatalogAway, SluiceError
from framework.base.patience import KAFKA
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.metadata import Metadata
from framework.core.kafka.cluster import Kafka, silent
from framework.core.rules import protocol, refusals
from framework.core.rules.protocol import Partition, Position, TableState, TopicState
from framework.core.sources.readers import reader_of
from framework.core.sources.source import SourceWithCounts, TopicsReader
from framework.operations.observe.next_run import connect, next_position
from framework.plan import Pipeline, Plan


@dataclass(frozen=True)
class Offsets:
    """A partition: the next offset that a run reads, and the last stable one, which is behind the last message."""

    partition: Partition
    next_offset: int
    end: int

    @property
    def waiting(self) -> int:
        return max(0, self.end - self.next_offset)


@dataclass(frozen=True, kw_only=True)
class PipelineProgress:
    """The progress of a pipeline. `bad_rows` are open ones, with `bad_waiting`, those that the next batch publishes. Where the lag is
    unknown, `trouble` says why: Kafka or the catalog does not answer, or a run would be refused."""

    pipeline: str
    table: str
    rows: int = 0
    bad_rows: int = 0
    lag: int | None = (
        None  # messages up to the last stable offsets; rows of another table, if it has changed since they were read
    )
    position: Position | None = None
    committed: datetime | None = None
    files: int = 0
    bytes: int = 0
    location: str = ""
    trouble: SluiceError | None = None
    is_unread: bool = False  # whether the table itself could not be read, so that all numbers are unknown
    bad_waiting: int = 0
    metadata: str = ""  # the current metadata file; none where there is no table, or the catalog does not answer
    snapshot: int | None = None
    offsets: tuple[Offsets, ...] = ()
    table_metadata: Metadata | None = field(default=None, repr=False, compare=False)

    @property
    def catalog_away(self) -> bool:
        """Whether the catalog does not answer, so that all numbers are unknown."""
        return self.is_unread or isinstance(self.trouble, CatalogAway)


def read_progress(
    plan: Plan, pipelines: Iterable[Pipeline] | None = None, patience: float = KAFKA
) -> tuple[PipelineProgress, ...]:
    """The progress of these pipelines, or of all. Asks Kafka about all of them at the same time."""
    chosen_pipelines = tuple(plan.pipelines if pipelines is None else pipelines)
    cluster_names = {pipeline.topic.cluster.name for pipeline in chosen_pipelines if pipeline.topics}
    clusters = {cluster.name: cluster for cluster in plan.clusters if cluster.name in cluster_names}
    connections = {name: _Question(partial(connect, cluster, plan.secrets, patience)) for name, cluster in clusters.items()}
    # Tables before topics: a batch that is committed in between is still counted as lag, never missing from both.
    table_progresses = [_table_progress(pipeline) for pipeline in chosen_pipelines]
    kafkas = {name: request.answer(patience) or silent(clusters[name]) for name, request in connections.items()}
    requests = [
        _Question(partial(_with_lag, pipeline, table_progress, kafkas))
        for pipeline, table_progress in zip(chosen_pipelines, table_progresses, strict=True)
    ]
    progress = []
    for pipeline, table_progress, request in zip(chosen_pipelines, table_progresses, requests, strict=True):
        # Each request has its own end; this one is for whatever else may hang.
        with_lag = request.answer(5 * patience)
        progress.append(with_lag or replace(table_progress.progress, trouble=silent(clusters[pipeline.topic.cluster.name])))
    return tuple(progress)


def table_progress(pipeline: Pipeline) -> PipelineProgress:
    """The progress of a pipeline without its lag: the catalog alone is asked."""
    return _table_progress(pipeline).progress


def newest_event(pipeline: Pipeline) -> datetime | None:
    """The newest event time in the table, by the bounds of its files."""
    return newest_event_in(
        pipeline, metadata.read(pipeline.table.catalog, pipeline.table.identifier) if pipeline.event_time else None
    )


def newest_event_in(pipeline: Pipeline, table: Metadata | None) -> datetime | None:
    """The newest event time in the table of a pipeline, which was read already."""
    column = pipeline.event_time
    with suppress(OSError, ValueError):  # its files cannot be read: the status of the batches says so
        return metadata.newest_time(table, column) if table and column else None
    return None


@dataclass(frozen=True)
class _TableProgress:
    """A table's progress by the catalog alone. `of_another`: bad rows of a former table are still there."""

    progress: PipelineProgress
    state: TableState | None
    of_another: bool


def _table_progress(pipeline: Pipeline) -> _TableProgress:
    progress = PipelineProgress(pipeline=pipeline.name, table=pipeline.table.identifier)
    try:
        table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
        bad_table = metadata.read(pipeline.table.catalog, pipeline.table.bad_rows)
        state = table_state.state_of(table) if table else None
        if table and not state:  # nothing was ever written to it, so Sluice did not make it
            state = TableState(uuid=table.uuid, main=-1, snapshots={}, position=None, owner=table.properties.get(protocol.OWNER))
        position = state.position if state else None
        waiting_count = table_state.bad_waiting(pipeline, position)
    except SluiceError as error:
        return _TableProgress(replace(progress, trouble=error, is_unread=True), None, False)
    of_another = bad_table is not None and bad_table.properties.get(protocol.OF) != (state.uuid if state else "")
    settled_count = int(bad_table.properties.get(protocol.SETTLED, 0)) if bad_table else 0
    progress = replace(
        progress, bad_rows=_rows(bad_table) - settled_count + waiting_count, bad_waiting=waiting_count, position=position
    )
    if table is None:
        return _TableProgress(progress, state, of_another)
    total = metadata.summary(table.main)
    progress = replace(
        progress, rows=_rows(table), files=int(total.get("total-data-files", 0)), bytes=int(total.get("total-files-size", 0)),
        committed=table.became_main(table.main) if table.main else None, location=table.document["location"], metadata=table.file,
        snapshot=table.main["snapshot-id"] if table.main else None, table_metadata=table,
    )  # fmt: skip
    return _TableProgress(progress, state, of_another)


def _rows(table: Metadata | None) -> int:
    return metadata.rows(metadata.summary(table.main if table else None))


def _with_lag(pipeline: Pipeline, table_progress: _TableProgress, kafkas: Mapping[str, Kafka | SluiceError]) -> PipelineProgress:
    """The table's progress with its lag, by Kafka or by the table that is read."""
    progress = table_progress.progress
    if progress.trouble:
        return progress
    try:
        if table_progress.of_another:
            raise refusals.leftover_bad_rows(pipeline)
        source = _source(pipeline, kafkas)
        position, topic_state = next_position(pipeline, table_progress.state, source)
        range_ = source.next(position, topic_state)
        offsets = _offsets(position, topic_state) if isinstance(source, TopicsReader) else ()
        return replace(progress, lag=source.lag(range_), offsets=offsets)
    except SluiceError as error:
        return replace(progress, trouble=error)


def _source(pipeline: Pipeline, kafkas: Mapping[str, Kafka | SluiceError]) -> SourceWithCounts:
    def messages() -> Kafka:
        kafka = kafkas[pipeline.topic.cluster.name]
        if isinstance(kafka, SluiceError):
            raise kafka
        return kafka

    return reader_of(pipeline, messages)


def _offsets(position: Position, topic_state: TopicState) -> tuple[Offsets, ...]:
    partitions = sorted(topic_state.ends, key=protocol.parted)
    return tuple(
        Offsets(partition, position.ends.get(partition, topic_state.starts.get(partition, 0)), topic_state.ends[partition])
        for partition in partitions
    )


_Answer = TypeVar("_Answer")


class _Question(Generic[_Answer]):
    """A question asked in a thread of its own. A question without an answer does not keep the process alive."""

    def __init__(self, question: Callable[[], _Answer]) -> None:
        self._question = question
        self._answer: _Answer | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def answer(self, seconds: float) -> _Answer | None:
        """The answer, or None if it does not come in time."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._question()
        except BaseException as error:  # raised again by `answer`
            self._error = error
