"""The next run of a pipeline: how its table and its spec differ, and what waits in its source.

Without Spark, and read-only. A system that does not answer soon is named and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timezone

from framework.base.errors import KafkaAway, NotOwned, SluiceError, SourceMissing, TableRecreated, UnreachableError
from framework.base.patience import KAFKA_WATCHED
from framework.core.iceberg import metadata, table_state
from framework.core.kafka.backlog import SPEED, Waiting, waiting
from framework.core.kafka.cluster import Kafka, listens, silent
from framework.core.maintain.due import Due, behind_a_run
from framework.core.rules import journal, protocol, refusals
from framework.core.rules.protocol import Position, TableState, TopicState
from framework.core.sources.readers import table_reader
from framework.core.sources.source import SourceReader, TopicsReader
from framework.operations.rebuild.estimate import Estimate, estimate_rebuild
from framework.plan import Cluster, Pipeline, Plan, SecretStore, in_order
from framework.plan.change import Change, TableNow, changes


@dataclass(frozen=True)
class Recompute:
    """A run that reads another table. `because` says why, and is empty if it would not. `rows` counts the rows that it would read
    now, None where a run creates that table first. With `groups`, `rows` have changed, and only their groups are computed again."""

    because: str
    rows: int | None
    groups: bool = False

    @property
    def seconds(self) -> float | None:
        return None if self.rows is None else self.rows / SPEED


@dataclass(frozen=True)
class NextRun:
    """The next run. `changes`, `waiting` and `recompute` are None where they are unknown; `waiting` is for topics, `recompute` for a
    table. `refused` says why a run would stop; `unreachable` says which system did not answer, or which topic is missing.
    `rebuild` estimates a rebuild, where the spec asks for changes that only a rebuild makes; `rows_differ`: also for other rows."""

    pipeline: Pipeline
    changes: tuple[Change, ...] | None
    waiting: tuple[Waiting, ...] | None = None
    _: KW_ONLY
    recompute: Recompute | None = None
    refused: tuple[SluiceError, ...] = ()
    unreachable: tuple[SluiceError, ...] = ()
    rebuild: Estimate | None = None
    rows_differ: bool = False
    maintenance: tuple[Due, ...] = ()  # the maintenance that follows its batches

    @property
    def would_run(self) -> bool:
        return not self.refused and all(change.allowed for change in self.changes or ())

    @property
    def idle(self) -> bool:
        """Whether a run would find nothing to do, as far as is known."""
        if self.recompute:
            return not self.recompute.because
        return self.waiting is not None and not any(backlog.messages for backlog in self.waiting)


def next_runs(plan: Plan, pipelines: Iterable[Pipeline], patience: float = KAFKA_WATCHED) -> Iterator[NextRun]:
    """The next run of each pipeline, in the order of the runs. A cluster that does not answer is not asked again."""
    clusters: dict[str, Kafka | SluiceError] = {}
    earlier_runs: dict[str, NextRun] = {}
    for pipeline in in_order(pipelines):
        if pipeline.read_tables:
            run = _next_run(pipeline, earlier_runs)
        else:
            cluster = pipeline.topic.cluster
            if cluster.name not in clusters:
                clusters[cluster.name] = connect(cluster, plan.secrets, patience)
            run = _next_run(pipeline, clusters[cluster.name])
            kafka_errors = [error for error in run.unreachable if isinstance(error, KafkaAway)]
            if kafka_errors:
                clusters[cluster.name] = kafka_errors[0]
        earlier_runs[pipeline.name] = run
        yield run


def next_position(pipeline: Pipeline, state: TableState | None, source: SourceReader) -> tuple[Position, TopicState]:
    """The position from which a run would continue, and the source's current state. Raises the errors with which a run would refuse. A
    table that is missing, or has no rows of a topic yet, begins there as `start_from` says."""
    topic_state = source.topic_state()
    is_ours = state is not None and not refusals.may_adopt(pipeline, state)
    position = (
        refusals.check(pipeline, state, topic_state)
        if state and is_ours
        else Position(attempt="", batch=0, cluster=topic_state.cluster, topics={}, ends={})
    )
    ends = {**position.ends, **source.starts(topic_state, position.topics)}
    return replace(position, ends=ends), topic_state


def connect(cluster: Cluster, secrets: SecretStore, patience: float) -> Kafka | SluiceError:
    try:
        if not listens(cluster, patience):
            return silent(cluster)
        return Kafka(cluster, secrets, patience)
    except SluiceError as error:
        return error


def _next_run(pipeline: Pipeline, origin: Kafka | SluiceError | Mapping[str, NextRun]) -> NextRun:
    """The next run. `origin` is Kafka or the error that it answers with, or the next runs of the pipelines before this one."""
    table = pipeline.table
    try:
        state, existing_table = table_state.state(table), table_state.existing(table)
        bad_rows = metadata.read(table.catalog, table.bad_rows)
    except SluiceError as error:
        return NextRun(pipeline, None, unreachable=(error,))
    if existing_table is not None and state is None:  # nothing was ever written to it, so Sluice did not make it
        state = TableState(uuid="", main=-1, snapshots={}, position=None, owner=existing_table.owner)
    run = NextRun(pipeline, ())
    try:
        if bad_rows is not None and bad_rows.properties.get(protocol.OF) != (state.uuid if state else ""):
            raise refusals.leftover_bad_rows(pipeline)
        if isinstance(origin, SluiceError):
            run = replace(run, unreachable=(origin,))
            if state is not None:
                refusals.check(pipeline, state, _remembered_topics(state))
        elif isinstance(origin, Kafka):
            waiting_by_topic = waiting(
                origin, *next_position(pipeline, state, TopicsReader(pipeline, origin)), table_state.speed(table)
            )
            run = replace(run, waiting=tuple(waiting_by_topic))
        else:
            run = replace(run, recompute=_recompute(pipeline, state, origin))
        journal.refuse_paused(pipeline)
    except SluiceError as error:
        is_unreachable = isinstance(error, UnreachableError)
        run = replace(run, unreachable=(error,)) if is_unreachable else replace(run, refused=(error,))
    run = replace(run, changes=_changes(pipeline, existing_table, run.refused))
    if run.would_run and not run.unreachable and existing_table is not None:
        current_time = datetime.now(timezone.utc)
        run = replace(run, maintenance=behind_a_run(pipeline, current_time))
    return _with_rebuild(run, state.position if state else None, origin if isinstance(origin, Kafka) else None)


def _with_rebuild(run: NextRun, position: Position | None, kafka: Kafka | None) -> NextRun:
    """The run with an estimate of a rebuild, where the spec asks for rows or files that a run does not change."""
    pipeline = run.pipeline
    if position is None or position.attempt == protocol.BORN or (kafka is None) == bool(pipeline.topics):
        return run  # or Kafka does not answer
    rows_differ = bool(position.spec and position.spec != pipeline.spec and kafka)
    needs_rebuild = any(change.rebuild for change in run.changes or ())
    if run.changes is None or not (rows_differ or needs_rebuild):
        return run
    try:
        return replace(run, rebuild=estimate_rebuild(pipeline, kafka), rows_differ=rows_differ)
    except SluiceError as error:
        return replace(run, unreachable=(*run.unreachable, error))


def _changes(pipeline: Pipeline, existing_table: TableNow | None, errors: tuple[SluiceError, ...]) -> tuple[Change, ...] | None:
    """The changes of the table; None for a table that is not this pipeline's, or that cannot be created."""
    not_comparable = (NotOwned, TableRecreated, SourceMissing)
    return None if any(isinstance(error, not_comparable) for error in errors) else changes(pipeline, existing_table)


def _recompute(pipeline: Pipeline, state: TableState | None, earlier_runs: Mapping[str, NextRun]) -> Recompute:
    source = table_reader(pipeline)
    reads_all = source.source.reads == "all"
    tables = (*source.source.tables, *(join.source for join in pipeline.joins if reads_all))
    runs_before = [earlier_runs[table.pipeline] for table in tables if table.pipeline in earlier_runs]
    new_names = [run.pipeline.name for run in runs_before if run.would_run and _creates(run)]
    if new_names:
        return Recompute(f"once `{', '.join(new_names)}` has created it", None)
    position, topic_state = next_position(pipeline, state, source)
    next_batch = source.next(position, topic_state)
    rows = next_batch.size if next_batch else source.rows() if reads_all else 0
    if state is None or position.attempt == protocol.BORN:
        return Recompute("for the first time", rows)
    if position.ends == {}:
        return Recompute("since the table was rolled back", rows)
    if position.topics != topic_state.topics:
        return Recompute("which was created again", rows)
    if reads_all and position.spec != pipeline.spec:
        return Recompute("since the spec has changed", rows)
    if next_batch:
        return Recompute("which has changed", rows, groups=reads_all and bool(next_batch.starts))
    waiting_names = [run.pipeline.name for run in runs_before if run.would_run and not run.idle]
    return Recompute(f"once `{', '.join(waiting_names)}` has run" if waiting_names else "", rows)


def _creates(run: NextRun) -> bool:
    return any(change.kind == "create" for change in run.changes or ())


def _remembered_topics(state: TableState) -> TopicState:
    """The topics as the table's position has them, for checks without Kafka."""
    position = state.position
    return TopicState(position.cluster, position.topics, position.ends, position.ends) if position else TopicState("", {}, {}, {})
