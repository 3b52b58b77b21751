"""An estimate of a rebuild: what it reads, and which rows of the table it cannot compute again.

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
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.second_identity import resume_position, second_pipeline
from framework.core.kafka.backlog import SPEED, Waiting, waiting
from framework.core.kafka.cluster import Kafka
from framework.core.rules import protocol
from framework.core.rules.protocol import Partition, Position, TopicState, parted
from framework.core.sources import table as table_source
from framework.core.sources.source import FromTopics, Messages, Source
from framework.plan import KAFKA_COLUMNS, Pipeline, Topic


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
    by: str
    operation: str
    _: KW_ONLY
    added: int
    deleted: int

    @property
    def words(self) -> str:
        return f"{self.operation} by {self.by} (snapshot {self.snapshot}: {self.added:,} rows added, {self.deleted:,} deleted)"


@dataclass(frozen=True, kw_only=True)
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
    def reads(self) -> int:
        """The number of messages, or of rows of the table."""
        return self.rows if self.rows is not None else sum(each.messages for each in self.waiting)

    @property
    def seconds(self) -> float:
        return self.rows / SPEED if self.rows is not None else sum(each.seconds for each in self.waiting)


def estimate_rebuild(pipeline: Pipeline, messages: Messages | None) -> Estimate:
    """The estimate for a table that exists and has a position; `messages` where the rows come from topics."""
    if messages is None:
        return Estimate(rows=table_source.source_of(pipeline).rows())
    assert isinstance(messages, Kafka), "messages of a test cannot be read again"
    table = current_table(pipeline)
    topic = FromTopics(pipeline, messages).topic_state()
    resumed = resume_position(pipeline)
    starts: Mapping[Partition, int] = start_offsets(pipeline, FromTopics(pipeline, messages), topic, table)
    from_ = resumed.ends if resumed else starts
    position = Position(attempt="", batch=0, cluster=topic.cluster, topics=topic.topics, ends=from_)
    if resumed:
        starts = _offsets_at_birth(metadata.read(pipeline.table.catalog, second_pipeline(pipeline).table.identifier)) or starts
    return Estimate(
        waiting=tuple(waiting(messages, position, topic, table_state.speed(pipeline.table))),
        done=sum(max(0, end - starts.get(each, 0)) for each, end in resumed.ends.items()) if resumed else 0,
        lost=(*lost_rows(pipeline, table, topic, starts), *_incomplete(pipeline, table, starts, messages)),
        foreign=tuple(foreign_commits(table)),
    )


def current_table(pipeline: Pipeline) -> Metadata:
    """The pipeline's table, which is there and has a position."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if table is None or table.main is None:
        raise BatchError(
            "no-table", f"there is no table {pipeline.table.identifier} to rebuild", f"`sluice run {pipeline.name}` creates it"
        )
    return table


def start_offsets(pipeline: Pipeline, source: Source, topic_state: TopicState, table: Metadata) -> dict[Partition, int]:
    """The offsets at which a rebuild begins: as `start_from` says, and with `latest` where the table began, if that is known."""
    starts = source.starts(topic_state, {})
    birth = _offsets_at_birth(table)
    for topic in pipeline.topics:
        if topic.start_from == "latest":
            starts.update({each: birth.get(each, 0) for each in starts if parted(each)[0] == topic.kafka_name})
    return {each: max(offset, topic_state.starts[each]) for each, offset in starts.items()}


def lost_rows(
    pipeline: Pipeline, table: Metadata, topic_state: TopicState, starts: Mapping[Partition, int]
) -> Iterator[LostRows]:
    """Rows in the table whose messages come before the first ones that a rebuild reads."""
    positions = [position for _, position in _positions(table)]
    known_topics = positions[-1].topics if positions else {}
    for topic in pipeline.topics:
        yield from _of_former_topic(table, topic_state, topic.kafka_name)
        topic_starts = {
            parted(each)[1]: offset for each, offset in starts.items() if parted(each)[0] == topic.kafka_name and offset > 0
        }
        if not topic_starts:
            continue
        bad = _rows_before(pipeline, pipeline.table.bad_rows, topic, topic_starts, "", without=False)
        because = "whose messages come before those that would be read: Kafka no longer has them, or `start_from` leaves them out"
        columns = {field["name"] for field in table.schema["fields"]}
        if all(column.name in columns for column in KAFKA_COLUMNS) and pipeline.kafka_columns:
            only = topic.kafka_name in known_topics if len(known_topics) == 1 else topic == pipeline.topics[0]
            rows = _rows_before(pipeline, pipeline.table.identifier, topic, topic_starts, "_kafka_", without=only)
            lost = LostRows(topic=topic.kafka_name, rows=rows, bad=bad, because=because)
        else:
            birth = _offsets_at_birth(table)
            before = (
                max(0, offset - birth.get(protocol.partition(topic.kafka_name, each), 0)) for each, offset in topic_starts.items()
            )
            lost = LostRows(topic=topic.kafka_name, rows=max(0, sum(before) - bad), bad=bad, because=because, messages=True)
        if lost.rows or lost.bad:
            yield lost


def foreign_commits(table: Metadata) -> Iterator[ForeignCommit]:
    """Commits of other programs since the table was created or rebuilt, without those that only rewrite files."""
    for each in table.ancestors():
        summary = metadata.summary(each)
        operation = summary.get("operation", "")
        if any(key.startswith("sluice.") for key in summary):
            if _is_rebuild(summary) or _is_birth(summary):
                return
        elif operation != "replace":
            by = " ".join(summary[key] for key in ("engine-name", "engine-version") if key in summary) or "another program"
            added, deleted = (int(summary.get(key, 0)) for key in ("added-records", "deleted-records"))
            yield ForeignCommit(each["snapshot-id"], by, operation, added=added, deleted=deleted)


def _incomplete(pipeline: Pipeline, table: Metadata, starts: Mapping[Partition, int], kafka: Kafka) -> Iterator[LostRows]:
    """Rows whose messages may be incomplete by now."""
    rows, keyed = metadata.rows(metadata.summary(table.main)), pipeline.table.keyed
    for topic in pipeline.topics if rows else ():
        if (keyed is None or keyed.versions) and kafka.compacts(topic):
            because = "which Kafka compacts: it may have only the newest message of each key"
            yield LostRows(topic=topic.kafka_name, rows=rows, bad=0, because=because, messages=True)
        elif keyed and keyed.unsent and any(starts[each] for each in starts if parted(each)[0] == topic.kafka_name):
            because = "whose values may be in messages that Kafka no longer has: Debezium does not repeat unchanged values"
            yield LostRows(topic=topic.kafka_name, rows=rows, bad=0, because=because, messages=True)


def _rows_before(pipeline: Pipeline, identifier: str, topic: Topic, starts: Mapping[int, int], before: str, without: bool) -> int:
    """The number of rows whose messages come before these offsets. `before` is the prefix of the columns; `without` includes rows
    without a topic."""
    table = table_state.table(pipeline.table.catalog, identifier)
    if table is None:
        return 0
    parts = (f"({before}partition = {number} and {before}offset < {offset})" for number, offset in starts.items())
    row_filter, name = f"({' or '.join(parts)})", f"{before}topic"
    if name in {field.name for field in table.schema().fields}:
        this_topic = f"{name} = '{topic.kafka_name}'"
        row_filter += f" and ({this_topic} or {name} is null)" if without else f" and {this_topic}"
    elif not without and len(pipeline.topics) > 1:
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
    for each in table.ancestors():
        summary = metadata.summary(each)
        if protocol.POSITION in summary:
            yield summary, Position.read(summary[protocol.POSITION])
            if _is_rebuild(summary):
                return


def _offsets_at_birth(table: Metadata | None) -> Mapping[Partition, int]:
    """The offsets at which the table began to read; empty where that commit has expired."""
    for each in table.ancestors() if table else ():
        summary = metadata.summary(each)
        if protocol.POSITION in summary and _is_birth(summary):
            return Position.read(summary[protocol.POSITION]).ends
    return {}


def _is_birth(summary: Mapping[str, str]) -> bool:
    return protocol.POSITION in summary and Position.read(summary[protocol.POSITION]).attempt == protocol.BORN


def _is_rebuild(summary: Mapping[str, str]) -> bool:
    return protocol.POSITION in summary and Position.read(summary[protocol.POSITION]).is_rebuild
