"""What a rebuild would read, and which rows of the table it could not make again.

Without Spark; looks, never changes.
Limit: of rows whose commits have expired it is not known whether another program wrote them. What a topic that was made again had before
is counted by the commits that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from framework.amounts import counted
from framework.engine.iceberg import metadata, table_state
from framework.engine.iceberg.metadata import Metadata
from framework.engine.iceberg.second_identity import resume_position, second_pipeline
from framework.engine.kafka.backlog import SPEED, Waiting, waiting
from framework.engine.kafka.cluster import Kafka
from framework.engine.rules import protocol
from framework.engine.rules.protocol import Partition, Position, TopicState, parted
from framework.engine.source import FromTable, FromTopics, Messages, Source
from framework.errors import BatchError
from framework.model import KAFKA_COLUMNS, Pipeline, Topic


@dataclass(frozen=True)
class LostRows:
    """Rows of a topic that cannot be made again. Where the table does not say of which message a row is, these are messages."""

    topic: str
    rows: int
    bad: int
    because: str
    messages: bool = False

    @property
    def words(self) -> str:
        rows = f"the rows of up to {self.rows:,} messages" if self.messages else counted(self.rows, "row")
        found = [rows] if self.rows else []
        found += [counted(self.bad, "bad row")] if self.bad else []
        return f"{' and '.join(found)} of {self.topic}, {self.because}"


@dataclass(frozen=True)
class ForeignCommit:
    """A commit of another program, which a rebuild would undo."""

    snapshot: int
    by: str
    operation: str
    added: int
    deleted: int

    @property
    def words(self) -> str:
        return f"{self.operation} by {self.by} (snapshot {self.snapshot}: {self.added:,} rows added, {self.deleted:,} deleted)"


@dataclass(frozen=True)
class Estimate:
    """`waiting` is of topics; `rows` are those of the table that the rows are computed from. `done` are messages that a rebuild that was
    cut off has read already."""

    waiting: tuple[Waiting, ...] = ()
    rows: int | None = None
    done: int = 0
    lost: tuple[LostRows, ...] = ()
    foreign: tuple[ForeignCommit, ...] = ()
    rolled_back: bool = False
    ended: bool = False  # it was published by a rebuild that died behind that

    @property
    def seconds(self) -> float:
        return self.rows / SPEED if self.rows is not None else sum(each.seconds for each in self.waiting)


def estimate_rebuild(pipeline: Pipeline, messages: Messages | None) -> Estimate:
    """Of a table that is there and has a position; `messages` where the rows come from topics."""
    if messages is None:
        return Estimate(rows=FromTable(pipeline).rows())
    assert isinstance(messages, Kafka), "messages of a test cannot be read again"
    own = current_table(pipeline)
    topic = FromTopics(pipeline, messages).topic_state()
    going_on = resume_position(pipeline)
    begins: Mapping[Partition, int] = first_offsets(pipeline, FromTopics(pipeline, messages), topic, own)
    from_ = going_on.ends if going_on else begins
    position = Position("", 0, topic.cluster, topic.topics, from_, 0, 0)
    if going_on:
        begins = _born_at(metadata.read(pipeline.table.catalog, second_pipeline(pipeline).table.identifier)) or begins
    return Estimate(
        tuple(waiting(messages, position, topic, table_state.speed(pipeline.table))),
        done=sum(max(0, end - begins.get(each, 0)) for each, end in going_on.ends.items()) if going_on else 0,
        lost=(*lost_rows(pipeline, own, topic, begins), *_less(pipeline, own, begins, messages)),
        foreign=tuple(foreign_commits(own)),
    )


def current_table(pipeline: Pipeline) -> Metadata:
    """The pipeline's table, which is there and has a position."""
    found = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if found is None or found.main is None:
        raise BatchError(
            "no-table", f"there is no table {pipeline.table.identifier} to make anew", f"`sluice run {pipeline.name}` makes it"
        )
    return found


def first_offsets(pipeline: Pipeline, source: Source, seen: TopicState, own: Metadata) -> dict[Partition, int]:
    """Where a rebuild begins to read: as `start_from` says, and with `latest` where the table began, if that is still known."""
    found = source.starts(seen, {})
    born = _born_at(own)
    for topic in pipeline.topics:
        if topic.start_from == "latest":
            found.update({each: born.get(each, 0) for each in found if parted(each)[0] == topic.kafka_name})
    return {each: max(offset, seen.starts[each]) for each, offset in found.items()}


def lost_rows(pipeline: Pipeline, own: Metadata, seen: TopicState, begins: Mapping[Partition, int]) -> Iterator[LostRows]:
    """What is in the table of messages before those from which a rebuild reads."""
    positions = [position for _, position in _positions(own)]
    alone = positions[-1].topics if positions else {}
    for topic in pipeline.topics:
        yield from _made_again(own, seen, topic.kafka_name)
        starts = {
            parted(each)[1]: offset for each, offset in begins.items() if parted(each)[0] == topic.kafka_name and offset > 0
        }
        if not starts:
            continue
        bad = _below(pipeline, pipeline.table.bad_rows, topic, starts, "", without=False)
        because = "whose messages come before those that would be read: Kafka no longer has them, or `start_from` leaves them out"
        there = {field["name"] for field in own.schema["fields"]}
        if all(column.name in there for column in KAFKA_COLUMNS) and pipeline.kafka_columns:
            only = topic.kafka_name in alone if len(alone) == 1 else topic == pipeline.topics[0]
            rows = _below(pipeline, pipeline.table.identifier, topic, starts, "_kafka_", without=only)
            found = LostRows(topic.kafka_name, rows, bad, because)
        else:
            born = _born_at(own)
            before = (max(0, offset - born.get(protocol.partition(topic.kafka_name, each), 0)) for each, offset in starts.items())
            found = LostRows(topic.kafka_name, max(0, sum(before) - bad), bad, because, messages=True)
        if found.rows or found.bad:
            yield found


def foreign_commits(own: Metadata) -> Iterator[ForeignCommit]:
    """Commits of other programs since the table was born or made anew; those that only rewrite files change no row."""
    for each in own.ancestors():
        said = metadata.summary(each)
        operation = said.get("operation", "")
        if any(key.startswith("sluice.") for key in said):
            if _is_rebuild(said) or _is_birth(said):
                return
        elif operation != "replace":
            by = " ".join(said[key] for key in ("engine-name", "engine-version") if key in said) or "another program"
            numbers = (int(said.get(key, 0)) for key in ("added-records", "deleted-records"))
            yield ForeignCommit(each["snapshot-id"], by, operation, *numbers)


def _less(pipeline: Pipeline, own: Metadata, begins: Mapping[Partition, int], kafka: Kafka) -> Iterator[LostRows]:
    """What messages that are still there may not say any more."""
    rows, keyed = metadata.rows(metadata.summary(own.main)), pipeline.table.keyed
    for topic in pipeline.topics if rows else ():
        if (keyed is None or keyed.versions) and kafka.compacts(topic):
            because = "which Kafka compacts: of each key it may have the newest message only"
            yield LostRows(topic.kafka_name, rows, 0, because, messages=True)
        elif keyed and keyed.unsent and any(begins[each] for each in begins if parted(each)[0] == topic.kafka_name):
            because = (
                "whose values may stand in messages that Kafka no longer has: Debezium does not send again what has not changed"
            )
            yield LostRows(topic.kafka_name, rows, 0, because, messages=True)


def _below(pipeline: Pipeline, identifier: str, topic: Topic, starts: Mapping[int, int], before: str, without: bool) -> int:
    """Rows of messages before these offsets. Columns are called with `before`; `without` takes in rows that name no topic."""
    table = table_state.table(pipeline.table.catalog, identifier)
    if table is None:
        return 0
    each = (f"({before}partition = {number} and {before}offset < {offset})" for number, offset in starts.items())
    found, name = f"({' or '.join(each)})", f"{before}topic"
    if name in {field.name for field in table.schema().fields}:
        of = f"{name} = '{topic.kafka_name}'"
        found += f" and ({of} or {name} is null)" if without else f" and {of}"
    elif not without and len(pipeline.topics) > 1:
        return 0
    return int(table.scan(row_filter=found).count())


def _made_again(own: Metadata, seen: TopicState, name: str) -> Iterator[LostRows]:
    rows = sum(
        int(said.get("added-records", 0))
        for said, position in _positions(own)
        if position.topics.get(name, seen.topics.get(name)) != seen.topics.get(name)
    )
    if rows:
        yield LostRows(name, rows, 0, "which was deleted and made again since")


def _positions(own: Metadata) -> Iterator[tuple[Mapping[str, str], Position]]:
    """What each of the table's own commits says of itself since it was born or made anew, the newest first."""
    for each in own.ancestors():
        said = metadata.summary(each)
        if protocol.POSITION in said:
            yield said, Position.read(said[protocol.POSITION])
            if _is_rebuild(said):
                return


def _born_at(table: Metadata | None) -> Mapping[Partition, int]:
    """Where the table began to read; nothing where that has expired."""
    for each in table.ancestors() if table else ():
        said = metadata.summary(each)
        if protocol.POSITION in said and _is_birth(said):
            return Position.read(said[protocol.POSITION]).ends
    return {}


def _is_birth(said: Mapping[str, str]) -> bool:
    return protocol.POSITION in said and Position.read(said[protocol.POSITION]).attempt == protocol.BORN


def _is_rebuild(said: Mapping[str, str]) -> bool:
    return protocol.POSITION in said and Position.read(said[protocol.POSITION]).is_rebuild
