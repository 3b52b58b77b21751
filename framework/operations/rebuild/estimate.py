"""An estimate of a rebuild: the messages or rows that it reads, and the rows of the table that it cannot compute again.

Without Spark, and read-only.
Limit: for rows whose commits have expired it is unknown whether another program wrote them. Rows of a topic that was recreated
are counted by the commits that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass

from framework.base.amounts import counted
from framework.base.errors import BatchError
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.main_line import main_line
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.second_identity import resume_position, second_pipeline
from framework.core.kafka.backlog import SPEED, Waiting, waiting
from framework.core.kafka.cluster import Kafka
from framework.core.rules import protocol
from framework.core.rules.protocol import Partition, Position, TopicState, parted
from framework.core.sources.readers import table_reader
from framework.core.sources.source import MessageStore, SourceReader, TopicsReader
from framework.plan import KAFKA_COLUMNS, Keyed, Pipeline, Topic


@dataclass(frozen=True, kw_only=True)
class LostRows:
    """Rows of a topic that cannot be computed again. Where the table does not have a row's message, these are counts of messages."""

    topic: str
    rows: int
    bad: int
    because: str
    messages: bool = False

    @property
    def words(self) -> str:
        rows = f"the rows of up to {self.rows:,} messages" if self.messages else counted(self.rows, "row")
        parts = [rows] if self.rows else []
        parts += [counted(self.bad, "bad row")] if self.bad else []
        return f"{' and '.join(parts)} of {self.topic}, {self.because}"


@dataclass(frozen=True)
class ForeignCommit:
    """A commit of another program, which a rebuild would undo."""

    snapshot: int
    author: str
    operation: str
    _: KW_ONLY
    added: int
    deleted: int

    @property
    def words(self) -> str:
        return (
            f"{self.operation} by {self.author} (snapshot {self.snapshot}: {self.added:,} rows added, {self.deleted:,} deleted)"
        )


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The cost and the losses of a rebuild. `waiting` is for topics; `rows` counts those of the source table. `done` counts messages that
    an interrupted rebuild has already read."""

    waiting: tuple[Waiting, ...] = ()
    rows: int | None = None
    done: int = 0
    lost: tuple[LostRows, ...] = ()
    foreign: tuple[ForeignCommit, ...] = ()
    rolled_back: bool = False
    ended: bool = False  # it was published by a rebuild that died after the commit

    @property
    def reads(self) -> int:
        """The number of messages, or of rows of the table."""
        return self.rows if self.rows is not None else sum(backlog.messages for backlog in self.waiting)

    @property
    def seconds(self) -> float:
        return self.rows / SPEED if self.rows is not None else sum(backlog.seconds for backlog in self.waiting)


def estimate_rebuild(pipeline: Pipeline, messages: MessageStore | None) -> Estimate:
    """The estimate for a table that exists and has a position; `messages` where the rows come from topics."""
    if messages is None:
        return Estimate(rows=table_reader(pipeline).rows())
    assert isinstance(messages, Kafka), "messages of a test cannot be read again"
    table = current_table(pipeline)
    topic_state = TopicsReader(pipeline, messages).topic_state()
    resume_point = resume_position(pipeline)
    starts: Mapping[Partition, int] = start_offsets(pipeline, TopicsReader(pipeline, messages), topic_state, table)
    next_offsets = resume_point.ends if resume_point else starts
    position = Position(attempt="", batch=0, cluster=topic_state.cluster, topics=topic_state.topics, ends=next_offsets)
    if resume_point:
        starts = _offsets_at_birth(metadata.read(pipeline.table.catalog, second_pipeline(pipeline).table.identifier)) or starts
    return Estimate(
        waiting=tuple(waiting(messages, position, topic_state, table_state.speed(pipeline.table))),
        done=sum(max(0, end - starts.get(partition, 0)) for partition, end in resume_point.ends.items()) if resume_point else 0,
        lost=(*lost_rows(pipeline, table, topic_state, starts), *_incomplete(pipeline, table, starts, messages)),
        foreign=tuple(foreign_commits(table)),
    )


def current_table(pipeline: Pipeline) -> Metadata:
    """The pipeline's table; an error if it does not exist or has no snapshot."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if table is None or table.main is None:
        raise BatchError(
            "no-table", f"there is no table {pipeline.table.identifier} to rebuild", f"`sluice run {pipeline.name}` creates it"
        )
    return table


def start_offsets(pipeline: Pipeline, source: SourceReader, topic_state: TopicState, table: Metadata) -> dict[Partition, int]:
    """The offsets at which a rebuild begins: as `start_from` says, and with `latest` where the table began, if that is known."""
    starts = source.starts(topic_state, {})
    birth = _offsets_at_birth(table)
    for topic in pipeline.topics:
        if topic.start_from == "latest":
            starts.update(
                {partition: birth.get(partition, 0) for partition in starts if parted(partition)[0] == topic.kafka_name}
            )
    return {partition: max(offset, topic_state.starts[partition]) for partition, offset in starts.items()}


def lost_rows(
    pipeline: Pipeline, table: Metadata, topic_state: TopicState, starts: Mapping[Partition, int]
) -> Iterator[LostRows]:
    """Rows in the table whose messages come before the first ones that a rebuild reads."""
    positions = [position for _, position in _positions(table)]
    known_topics = positions[-1].topics if positions else {}
    for topic in pipeline.topics:
        yield from _of_former_topic(table, topic_state, topic.kafka_name)
        topic_starts = {
            parted(partition)[1]: offset
            for partition, offset in starts.items()
            if parted(partition)[0] == topic.kafka_name and offset > 0
        }
        if not topic_starts:
            continue
        bad_count = _rows_before(pipeline, pipeline.table.bad_rows, topic, topic_starts, "", with_null=False)
        because = "whose messages come before those that would be read: Kafka no longer has them, or `start_from` leaves them out"
        columns = {field["name"] for field in table.schema["fields"]}
        if all(column.name in columns for column in KAFKA_COLUMNS) and pipeline.kafka_columns:
            includes_null = topic.kafka_name in known_topics if len(known_topics) == 1 else topic == pipeline.topics[0]
            rows = _rows_before(pipeline, pipeline.table.identifier, topic, topic_starts, "_kafka_", with_null=includes_null)
            loss = LostRows(topic=topic.kafka_name, rows=rows, bad=bad_count, because=because)
        else:
            birth = _offsets_at_birth(table)
            lost_messages = (
                max(0, offset - birth.get(protocol.partition(topic.kafka_name, number), 0))
                for number, offset in topic_starts.items()
            )
            loss = LostRows(
                topic=topic.kafka_name, rows=max(0, sum(lost_messages) - bad_count), bad=bad_count, because=because, messages=True
            )
        if loss.rows or loss.bad:
            yield loss


def foreign_commits(table: Metadata) -> Iterator[ForeignCommit]:
    """Commits of other programs since the table was created or rebuilt, without those that only rewrite files."""
    for snapshot in main_line(table):
        summary = metadata.summary(snapshot)
        operation = summary.get("operation", "")
        if any(key.startswith("sluice.") for key in summary):
            if _is_rebuild(summary) or _is_birth(summary):
                return
        elif operation != "replace":
            author = " ".join(summary[key] for key in ("engine-name", "engine-version") if key in summary) or "another program"
            added, deleted = (int(summary.get(key, 0)) for key in ("added-records", "deleted-records"))
            yield ForeignCommit(snapshot["snapshot-id"], author, operation, added=added, deleted=deleted)


def _incomplete(pipeline: Pipeline, table: Metadata, starts: Mapping[Partition, int], kafka: Kafka) -> Iterator[LostRows]:
    """Rows whose messages may be incomplete by now."""
    rows, rule = metadata.rows(metadata.summary(table.main)), pipeline.table.rule
    has_unsent = isinstance(rule, Keyed) and bool(rule.unsent)
    for topic in pipeline.topics if rows else ():
        if not rule.newest_only and kafka.compacts(topic):
            because = "which Kafka compacts: it may have only the newest message of each key"
            yield LostRows(topic=topic.kafka_name, rows=rows, bad=0, because=because, messages=True)
        elif has_unsent and any(starts[partition] for partition in starts if parted(partition)[0] == topic.kafka_name):
            because = "whose values may be in messages that Kafka no longer has: Debezium does not repeat unchanged values"
            yield LostRows(topic=topic.kafka_name, rows=rows, bad=0, because=because, messages=True)


def _rows_before(
    pipeline: Pipeline, identifier: str, topic: Topic, starts: Mapping[int, int], prefix: str, with_null: bool
) -> int:
    """The number of rows whose messages come before these offsets. `prefix` is that of the columns; `with_null` includes
    rows without a topic."""
    table = table_state.table(pipeline.table.catalog, identifier)
    if table is None:
        return 0
    parts = (f"({prefix}partition = {number} and {prefix}offset < {offset})" for number, offset in starts.items())
    row_filter, name = f"({' or '.join(parts)})", f"{prefix}topic"
    if name in {field.name for field in table.schema().fields}:
        this_topic = f"{name} = '{topic.kafka_name}'"
        row_filter += f" and ({this_topic} or {name} is null)" if with_null else f" and {this_topic}"
    elif not with_null and len(pipeline.topics) > 1:
        return 0
    return int(table.scan(row_filter=row_filter).count())


def _of_former_topic(table: Metadata, topic_state: TopicState, name: str) -> Iterator[LostRows]:
    rows = sum(
        int(summary.get("added-records", 0))
        for summary, position in _positions(table)
        if position.topics.get(name, topic_state.topics.get(name)) != topic_state.topics.get(name)
    )
    if rows:
        yield LostRows(topic=name, rows=rows, bad=0, because="which was deleted and created again since")


def _positions(table: Metadata) -> Iterator[tuple[Mapping[str, str], Position]]:
    """The summary and the position of each of the table's own commits since it was created or rebuilt, the newest first."""
    for snapshot in main_line(table):
        summary = metadata.summary(snapshot)
        if protocol.POSITION in summary:
            yield summary, Position.read(summary[protocol.POSITION])
            if _is_rebuild(summary):
                return


def _offsets_at_birth(table: Metadata | None) -> Mapping[Partition, int]:
    """The offsets at which the table began to read; empty where that commit has expired."""
    for snapshot in main_line(table) if table else ():
        summary = metadata.summary(snapshot)
        if protocol.POSITION in summary and _is_birth(summary):
            return Position.read(summary[protocol.POSITION]).ends
    return {}


def _is_birth(summary: Mapping[str, str]) -> bool:
    return protocol.POSITION in summary and Position.read(summary[protocol.POSITION]).attempt == protocol.BORN


def _is_rebuild(summary: Mapping[str, str]) -> bool:
    return protocol.POSITION in summary and Position.read(summary[protocol.POSITION]).is_rebuild
