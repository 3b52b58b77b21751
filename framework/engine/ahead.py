"""What the next run of a pipeline would find: what differs between its table and its spec, and what waits in its topics.

Without Spark; looks, never changes. What does not answer soon is named and left out.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from framework.engine import look, refusals
from framework.engine.kafka import Kafka
from framework.engine.protocol import Position, TableState, TopicState, next_range, parted
from framework.engine.source import FromTable, FromTopics, Source
from framework.errors import RefusedError, SluiceError, TableRecreated, UnreachableError
from framework.plan.change import Change, Existing, changes
from framework.plan.model import Cluster, Pipeline, Plan, SecretStore, Table

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
class Ahead:
    """`changes` and `waiting` are None where they could not be seen, and so is `anew`: whether a table that is computed from
    another one would be computed again. `refused` says why a run would not go on, `unseen` what did not answer."""

    pipeline: Pipeline
    changes: tuple[Change, ...] | None
    waiting: tuple[Waiting, ...] | None
    refused: tuple[SluiceError, ...] = ()
    unseen: tuple[SluiceError, ...] = ()
    anew: bool | None = None

    @property
    def would_run(self) -> bool:
        return not self.refused and all(change.allowed for change in self.changes or ())


def look_ahead(plan: Plan, pipelines: Iterable[Pipeline]) -> Iterator[Ahead]:
    """One pipeline after the other. A cluster that does not answer is not asked again."""
    clusters: dict[str, Kafka | SluiceError] = {}
    for pipeline in pipelines:
        if pipeline.source:
            yield _ahead(pipeline, None)
            continue
        cluster = pipeline.topic.cluster
        if cluster.name not in clusters:
            clusters[cluster.name] = _connected(cluster, plan.secrets)
        found = _ahead(pipeline, clusters[cluster.name])
        silent = [error for error in found.unseen if error.code == "kafka-unreachable"]
        if silent:
            clusters[cluster.name] = silent[0]
        yield found


def going_on(pipeline: Pipeline, seen: TableState | None, source: Source) -> tuple[Position, TopicState]:
    """Where a run would go on, and what the source has now; raises what a run would refuse. A table that is missing, or has
    nothing of a topic yet, would begin there now as `start_from` says."""
    now = source.look()
    position = refusals.check(pipeline, seen, now) if seen else Position("", 0, now.cluster, {}, {}, 0, 0)
    ends = {**position.ends, **source.starts(now, position.topics)}
    return replace(position, topics=now.topics, ends=ends), now


def _connected(cluster: Cluster, secrets: SecretStore) -> Kafka | SluiceError:
    try:
        if not _listens(cluster):
            hint = "is it running? `sluice services up kafka` starts one on this machine"
            return UnreachableError("kafka-unreachable", f"Kafka at {cluster.bootstrap} does not answer", hint)
        return Kafka(cluster, secrets, _PATIENCE)
    except SluiceError as error:
        return error


def _listens(cluster: Cluster) -> bool:
    """Whether anybody answers at one of the addresses. Asked before Kafka's own client, which tries again and again where it is
    turned away at once."""
    addresses = [each.strip().rpartition("://")[2].rpartition(":") for each in cluster.bootstrap.split(",")]
    for host, _, port in addresses:
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE / len(addresses)).close()
        except OSError:
            continue
        except ValueError:
            return True  # no port: Kafka's own client says what is wrong
        return True
    return False


def _ahead(pipeline: Pipeline, kafka: Kafka | SluiceError | None) -> Ahead:
    table = pipeline.table
    try:
        seen, existing, speed = look.state(table), look.existing(table), look.speed(table)
        left = existing is None and look.table(table.catalog, table.bad_rows) is not None
    except Exception as error:  # whatever a broken catalog makes of PyIceberg: the plan is shown all the same
        return Ahead(pipeline, None, None, unseen=(_unreadable(table, error),))
    if existing is not None and seen is None:  # nothing was ever written to it, so Sluice did not make it
        seen = TableState("", -1, {}, None, existing.owner)
    found = Ahead(pipeline, (), None)
    try:
        if left:
            raise _leftovers(pipeline)
        if isinstance(kafka, SluiceError):
            found = replace(found, unseen=(kafka,))
            if seen is not None:
                refusals.check(pipeline, seen, _as_remembered(seen))
        elif kafka is not None:
            waiting = _waiting(kafka, *going_on(pipeline, seen, FromTopics(pipeline, kafka)), speed)
            found = replace(found, waiting=tuple(waiting))
        else:
            source = FromTable(pipeline)
            found = replace(found, waiting=(), anew=source.next(*going_on(pipeline, seen, source)) is not None)
    except RefusedError as error:
        found = replace(found, refused=(error,))
    except SluiceError as error:
        found = replace(found, unseen=(error,))
    return replace(found, changes=_changes(pipeline, existing, found.refused))


def _changes(pipeline: Pipeline, existing: Existing | None, refused: tuple[SluiceError, ...]) -> tuple[Change, ...]:
    """None in a table of somebody else, nor where no table is made."""
    none = any(error.code in ("table-not-ours", "table-of-another", "table-recreated") for error in refused)
    return () if none else changes(pipeline, existing)


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


def _as_remembered(seen: TableState) -> TopicState:
    """The topics as the table's position knows them, for what a table alone tells."""
    position = seen.position
    return TopicState(position.cluster, position.topics, position.ends, position.ends) if position else TopicState("", {}, {}, {})


def _leftovers(pipeline: Pipeline) -> TableRecreated:
    return TableRecreated(
        "table-recreated",
        f"the table {pipeline.table.identifier} is gone, but {pipeline.table.bad_rows} still holds bad rows of its predecessor",
        f"`sluice accept {pipeline.name}`: those bad rows are dropped and the topic is read from `start_from` into a new table",
    )


def _unreadable(table: Table, error: Exception) -> UnreachableError:
    said = (str(error) or type(error).__name__).splitlines()[0]
    return UnreachableError("catalog-unreachable", f"the catalog `{table.catalog.name}` cannot be read: {said}")
