"""What the next run of a pipeline would find: what differs between its table and its spec, and what waits where its rows come from.

Without Spark; looks, never changes. What does not answer soon is named and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from framework.engine import look, metadata, notes, protocol, refusals
from framework.engine.kafka import Kafka, listens, silent
from framework.engine.protocol import Position, TableState, TopicState, next_range, parted
from framework.engine.source import FromTable, FromTopics, Source
from framework.errors import SluiceError, UnreachableError
from framework.plan.change import Change, Existing, changes
from framework.plan.model import Cluster, Pipeline, Plan, SecretStore, in_order

SPEED = 250_000.0  # messages a second, for a table whose own batches do not tell
_PATIENCE = 2.5  # seconds until Kafka counts as not answering


@dataclass(frozen=True)
class Waiting:
    """A topic's messages up to the last stable offsets. Bytes and speed, which is messages a second, are estimates."""

    topic: str  # as Kafka calls it
    offsets: tuple[tuple[int, int, int], ...]  # each partition, its next offset, its end
    bytes: int | None
    speed: float
    measured: bool  # by the table's own batches

    @property
    def messages(self) -> int:
        return sum(end - start for _, start, end in self.offsets)

    @property
    def seconds(self) -> float:
        return self.messages / self.speed


@dataclass(frozen=True)
class Anew:
    """Why a table that is computed from another one would be computed again, or for the first time; without a reason it would
    not be. `rows` are those of the other table now, None where a run makes it first."""

    because: str
    rows: int | None

    @property
    def seconds(self) -> float | None:
        return None if self.rows is None else self.rows / SPEED


@dataclass(frozen=True)
class Ahead:
    """`changes`, `waiting` and `anew` are None where they could not be seen; `waiting` is of topics, `anew` of a table. `refused`
    says why a run would not go on, `unseen` what did not answer, or is a topic that nobody has made yet."""

    pipeline: Pipeline
    changes: tuple[Change, ...] | None
    waiting: tuple[Waiting, ...] | None = None
    anew: Anew | None = None
    refused: tuple[SluiceError, ...] = ()
    unseen: tuple[SluiceError, ...] = ()

    @property
    def would_run(self) -> bool:
        return not self.refused and all(change.allowed for change in self.changes or ())

    @property
    def idle(self) -> bool:
        """Whether a run would find nothing to do, as far as that was seen."""
        if self.anew:
            return not self.anew.because
        return self.waiting is not None and not any(each.messages for each in self.waiting)


def look_ahead(plan: Plan, pipelines: Iterable[Pipeline], patience: float = _PATIENCE) -> Iterator[Ahead]:
    """One pipeline after the other, as they would run. A cluster that does not answer is not asked again."""
    clusters: dict[str, Kafka | SluiceError] = {}
    before: dict[str, Ahead] = {}
    for pipeline in in_order(pipelines):
        if pipeline.source:
            found = _look(pipeline, before)
        else:
            cluster = pipeline.topic.cluster
            if cluster.name not in clusters:
                clusters[cluster.name] = connected(cluster, plan.secrets, patience)
            found = _look(pipeline, clusters[cluster.name])
            away = [error for error in found.unseen if error.code == "kafka-unreachable"]
            if away:
                clusters[cluster.name] = away[0]
        before[pipeline.name] = found
        yield found


def going_on(pipeline: Pipeline, seen: TableState | None, source: Source) -> tuple[Position, TopicState]:
    """Where a run would go on, and what the source has now; raises what a run would refuse. A table that is missing, or has
    nothing of a topic yet, would begin there now as `start_from` says."""
    now = source.look()
    position = refusals.check(pipeline, seen, now) if seen else Position("", 0, now.cluster, {}, {}, 0, 0)
    ends = {**position.ends, **source.starts(now, position.topics)}
    return replace(position, ends=ends), now


def connected(cluster: Cluster, secrets: SecretStore, patience: float) -> Kafka | SluiceError:
    try:
        if not listens(cluster, patience):
            return silent(cluster)
        return Kafka(cluster, secrets, patience)
    except SluiceError as error:
        return error


def _look(pipeline: Pipeline, from_: Kafka | SluiceError | Mapping[str, Ahead]) -> Ahead:
    """With Kafka, or why it does not answer; or with what was found of the pipelines that run before this one."""
    table = pipeline.table
    try:
        seen, existing = look.state(table), look.existing(table)
        bad = metadata.read(table.catalog, table.bad_rows)
    except SluiceError as error:
        return Ahead(pipeline, None, unseen=(error,))
    if existing is not None and seen is None:  # nothing was ever written to it, so Sluice did not make it
        seen = TableState("", -1, {}, None, existing.owner)
    found = Ahead(pipeline, ())
    try:
        if bad is not None and bad.properties.get(protocol.OF) != (seen.uuid if seen else ""):
            raise refusals.leftovers(pipeline)
        if isinstance(from_, SluiceError):
            found = replace(found, unseen=(from_,))
            if seen is not None:
                refusals.check(pipeline, seen, _as_remembered(seen))
        elif isinstance(from_, Kafka):
            waiting = _waiting(from_, *going_on(pipeline, seen, FromTopics(pipeline, from_)), look.speed(table))
            found = replace(found, waiting=tuple(waiting))
        else:
            found = replace(found, anew=_anew(pipeline, seen, from_))
        notes.refuse_paused(pipeline.name)
    except SluiceError as error:
        unseen = isinstance(error, UnreachableError)
        found = replace(found, unseen=(error,)) if unseen else replace(found, refused=(error,))
    return replace(found, changes=_changes(pipeline, existing, found.refused))


def _changes(pipeline: Pipeline, existing: Existing | None, refused: tuple[SluiceError, ...]) -> tuple[Change, ...] | None:
    """A table of somebody else is not compared, nor is one that could not be made."""
    none = ("table-not-ours", "table-of-another", "table-recreated", "source-missing")
    return None if any(error.code in none for error in refused) else changes(pipeline, existing)


def _waiting(kafka: Kafka, position: Position, topic: TopicState, speed: float | None) -> Iterator[Waiting]:
    range_ = next_range(position, topic, 1)
    starts = range_.starts if range_ else topic.ends
    for name in topic.topics:
        here = {each: start for each, start in starts.items() if parted(each)[0] == name}
        waits = {each: topic.ends[each] - start for each, start in here.items() if topic.ends[each] > start}
        messages = sum(waits.values())
        fullest = sorted(waits, key=lambda each: (-waits[each], each))[:10]
        size = kafka.message_size([(each, here[each]) for each in fullest]) if fullest else None
        offsets = sorted((parted(each)[1], start, max(start, topic.ends[each])) for each, start in here.items())
        yield Waiting(name, tuple(offsets), None if size is None else round(size * messages), speed or SPEED, speed is not None)


def _anew(pipeline: Pipeline, seen: TableState | None, before: Mapping[str, Ahead]) -> Anew:
    source = FromTable(pipeline)
    writer = source.source.pipeline
    first = before.get(writer)
    if first and first.would_run and any(change.kind == "create" for change in first.changes or ()):
        return Anew(f"once `{writer}` has made it", None)
    position, now = going_on(pipeline, seen, source)
    rows = source.rows()
    if seen is None or position.attempt == protocol.BORN:
        return Anew("for the first time", rows)
    if position.ends == {}:
        return Anew("since the table was rolled back", rows)
    if position.topics != now.topics:
        return Anew("which was made again", rows)
    if position.ends != now.ends:
        return Anew("which has changed", rows)
    if position.spec != pipeline.spec:
        return Anew("since the spec has changed", rows)
    return Anew(f"once `{writer}` has run" if first and first.would_run and not first.idle else "", rows)


def _as_remembered(seen: TableState) -> TopicState:
    """The topics as the table's position knows them, for what a table alone tells."""
    position = seen.position
    return TopicState(position.cluster, position.topics, position.ends, position.ends) if position else TopicState("", {}, {}, {})
