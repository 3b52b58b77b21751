"""Sends the rows of a table to a Kafka topic, once they are committed.

Guarantee: each committed row at least once, and those of a key in the order of their commits. A repeat has the same headers
`sluice-table`, `sluice-commit` and `sluice-row`. If a row changed several times before it was sent, its last state is sent. A sender that
stopped and wakes up is refused by Kafka.
Limit: rows that leave a table without keys, as by a rollback, stay in the topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from framework.base.errors import Problem
from framework.base.patience import REGISTRY_NEEDED
from framework.base.types import BIGINT, BINARY, BOOLEAN, DATE, INT, STRING, Decimal, Field
from framework.core.follow.committed import FollowInput
from framework.core.follow.taken import taken
from framework.core.sources.changes import COMMIT, ROW
from framework.documents.draft import Draft, only
from framework.documents.rows import Rows
from framework.language.options import ComponentName, OptionGroup, option
from framework.language.scalars import ColumnName, Expression, KafkaName
from framework.messages import formats
from framework.messages.schemas.versions import Unsupported
from framework.plan import Cluster, Column, Decoding, Follower, Pipeline, PlannedSubject, Topic, digest
from framework.plan.schema import Schema
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from framework.features.followers._kafka_sink import Turn

ROWS = ComponentName("formats", "ROW", besides=("json",))  # formats that write a row by a schema
_AS_TEXT = (STRING, INT, BIGINT, BOOLEAN, DATE)  # key columns that are their text
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class Options(OptionGroup):
    """Send the rows to a Kafka topic."""

    known_by: ClassVar[str | None] = "topic"

    topic: KafkaName = option(
        "A Kafka topic to which each committed row is sent: the name of a `topic` of the specs, or a topic's name in Kafka. A topic "
        "that is missing is created.",
        example="flagged_trades",
    )  # fmt: skip
    where: Expression | None = option(
        "Which rows are sent. A row of an `upsert` or a total that ceases to be one of them is sent as deleted; default: all.",
        default=None, example="\"anomaly_flag <> 'NORMAL'\"", aka=["filter", "when", "if"],
    )  # fmt: skip
    key: ColumnName | None = option(
        "The column whose text is the message's key. Messages of one key stay in order; default: the `keys` of the table, or none.",
        default=None, example="userid", aka=["keys", "key_column"],
    )  # fmt: skip
    value: Annotated[str, ROWS] = option(
        "How a row is written: `json`, one object with all columns; `avro`, by a schema of the columns, which is registered as "
        "`<topic>-value`. A deleted row of an `upsert`, and a total whose group is gone, is a message without a value.",
        default="json", aka=["format"],
    )  # fmt: skip


@dataclass(frozen=True)
class Onward:
    """The topic to which rows are sent. `deletes`: whether a deleted row is sent as a message without a value."""

    cluster: Cluster
    kafka_name: str
    _: KW_ONLY
    partitions: int | None  # where it is created; None: as many as the cluster's default
    where: str | None
    keys: tuple[Column, ...]
    deletes: bool
    format: str
    schema: Schema | None  # where the format has one


def plan_follower(written: Options, pipeline: Pipeline, draft: Draft) -> Follower | None:
    topic = draft.topics.get(written.topic)
    cluster = topic.cluster if topic else _cluster(pipeline, draft, written)
    name = topic.kafka_name if topic else written.topic
    problems_before = len(draft.problems)
    draft.problems.extend(_problems(written, pipeline, name, cluster))
    rows = Rows(pipeline.table.columns, draft.problems, kafka=(), event_time=False, document=written.node)
    where = rows.unguarded_condition(written.where, written.place("where")) if written.where else None
    if where and where.fails:
        message = f"`{written.where}` cannot be computed for every row, and a committed row can be no bad row any more"
        hint = "compute it in a step, `derive: {wanted: …}`, and write `where: wanted`"
        draft.problems.append(Problem(written.place("where"), "can-fail", message, hint))
    keys = _keys(written, pipeline, rows)
    schema = _schema(written, pipeline, name, cluster, draft) if written.value in ROWS.declared() and cluster else None
    if cluster is None or len(draft.problems) > problems_before:
        return None
    table = pipeline.table
    onward = Onward(
        cluster, name, partitions=topic.partitions if topic else None, where=str(where.sql) if where else None, keys=keys,
        deletes=bool(table.keys) and not table.rule.versions,
        format=written.value, schema=schema,
    )  # fmt: skip
    return Follower(
        type="topic", name=name, where=written.place(), says=tuple(_says(written, onward)), options=onward,
        follow=follow, take_turn=take_turn,
        asset=("kafka", cluster.name, name), sends_to=(cluster, name), reads_back=onward.deletes,
        topic=topic or _filled(written, pipeline, onward),
        identity=digest.text((cluster.name, onward.where, [column.name for column in keys], written.value)),
    )  # fmt: skip


def _filled(written: Options, pipeline: Pipeline, onward: Onward) -> Topic:
    """The topic to which rows are sent, for readers of its messages, if no document of the specs describes it."""
    subject = f"{onward.kafka_name}-value"
    registered = PlannedSubject(of="value", subject=subject, numbers=(), refused=(), columns_known=True)
    return Topic(
        name=onward.kafka_name, where=written.place(), doc="", cluster=onward.cluster, kafka_name=onward.kafka_name, partitions=0,
        value=onward.format, columns=pipeline.table.readable, key_columns=(), key_format=_key_format(onward), headers=(),
        decoding=Decoding((), ()), event_time=None, start_from="earliest", generator=None,
        registered=(registered,) if onward.schema else (),
    )  # fmt: skip


def _key_format(onward: Onward) -> str:
    """The format of the keys that `_key` writes."""
    if not onward.keys:
        return ""
    if _is_object(onward):
        return "json"
    return "bytes" if onward.keys[0].type == BINARY else "string"


def _is_object(onward: Onward) -> bool:
    """Whether a key is a JSON object, not the text of one column."""
    first_column = onward.keys[0]
    return len(onward.keys) > 1 or not (first_column.type in (*_AS_TEXT, BINARY) or isinstance(first_column.type, Decimal))


def _cluster(pipeline: Pipeline, draft: Draft, written: Options) -> Cluster | None:
    return pipeline.topic.cluster if pipeline.topics else only(draft, draft.clusters, "cluster", written.place("topic"))


def _problems(written: Options, pipeline: Pipeline, name: str, cluster: Cluster | None) -> Iterator[Problem]:
    table = pipeline.table
    if any((name, cluster) == (topic.kafka_name, topic.cluster) for topic in pipeline.topics):
        hint = "send it to another topic"
        yield Problem(written.place("topic"), "feeds-itself", f"`{pipeline.name}` reads the topic `{name}`", hint)
    if table.write.whole:
        message = f"each run of `write: {table.write.name}` writes all rows again, and each would be sent"
        yield Problem(written.place("topic"), "rows-replaced", message, "write `write: upsert` with `keys`")
    if table.format_version < 3:
        message = "rows of a table of format 2 have no ids by which a repeat is known"
        yield Problem(written.place("topic"), "needs-row-ids", message, "write `format_version: 3`")


def _schema(written: Options, pipeline: Pipeline, name: str, cluster: Cluster, draft: Draft) -> Schema | None:
    """A schema of the table's columns."""
    if cluster.registry is None:
        hint = "add `registry:` with its address, such as `registry: http://127.0.0.1:18081/apis/ccompat/v7`"
        message = f"the cluster `{cluster.name}` names no schema registry, which `value: {written.value}` needs"
        draft.problems.append(Problem(written.place("value"), "no-registry", message, hint))
        return None
    format_ = formats.find("value", written.value)
    assert isinstance(format_, formats.RegisteredSchema)
    fields = [Field(column.name, column.type) for column in pipeline.table.readable]
    try:
        return formats.schema_of(format_, f"row_{re.sub('[^A-Za-z0-9]', '_', name)}", fields)
    except Unsupported as error:
        hint = f"{error.hint}; or write `value: json`".removeprefix("; or ")
        draft.problems.append(Problem(written.place("value"), "unsupported-schema", error.message, hint))
        return None


def _keys(written: Options, pipeline: Pipeline, rows: Rows) -> tuple[Column, ...]:
    keys = pipeline.table.keys
    by_name = {column.name: column for column in pipeline.table.columns}
    if written.key is None:
        return tuple(by_name[name] for name in keys if name in by_name)  # a key that is no column was reported at its own place
    if keys and keys != (written.key,):
        message = f"the table has one row per {', '.join(keys)}, and messages by `{written.key}` could not be told apart"
        rows.problems.append(Problem(written.place("key"), "other-key", message, "remove `key`: the table's keys are the key"))
        return ()
    column = rows.column(written.key, written.place("key"))
    return (column,) if column else ()


def _says(written: Options, onward: Onward) -> Iterator[str]:
    yield f"rows where {written.where}" if written.where else "all rows"
    if onward.keys:
        yield f"by {', '.join(column.name for column in onward.keys)}"
    yield f"as {written.value}{', deleted ones without a value' if onward.deletes else ''}"


def take_turn(committed: FollowInput) -> Turn:
    """Ends earlier senders of the table's rows to the topic, which is created if it is missing."""
    from framework.features.followers import _kafka_sink as kafka_sink

    onward: Onward = committed.follower.options
    sender = f"{onward.kafka_name} {committed.table.document['location']}"  # the same from each home, and of a table that was created again
    return kafka_sink.take_turn(
        committed.lake().spark, onward.cluster, onward.kafka_name, onward.partitions, sender, committed.secrets
    )


def follow(committed: FollowInput) -> int:
    from framework.features.followers import _kafka_sink as kafka_sink

    onward: Onward = committed.follower.options
    is_chosen = onward.where or "true"
    current_rows = committed.changes.now().where(is_chosen)
    messages = current_rows.selectExpr(_key(onward), f"{_whole_value(committed, onward)} AS value", *_place(committed))
    if onward.deletes:
        for deletions in _left(committed, messages) if committed.is_first else _gone(committed, current_rows, onward):
            messages = messages.unionByName(deletions)
    try:
        return kafka_sink.send(messages, (COMMIT, ROW), committed.turn, by_key=bool(onward.keys))
    except kafka_sink.NoTurn:
        raise taken(committed.follower) from None


def _whole_value(committed: FollowInput, onward: Onward) -> str:
    """SQL of a message's value. The schema of Avro is registered, if it is not yet."""
    if onward.schema is None:
        return f"CAST({_value(committed.columns)} AS BINARY)"
    from framework.messages.registry.client import Registry

    registry = Registry(onward.cluster, committed.secrets, REGISTRY_NEEDED)
    id_ = registry.register(f"{onward.kafka_name}-value", onward.schema.kind, onward.schema.text)
    columns = ", ".join(identifier(column.name) for column in committed.columns)
    row = formats.having("ROW")[onward.format](f"struct({columns})", literal(onward.schema.text))
    return f"concat(X'00{id_:08x}', {row})"


def _gone(committed: FollowInput, current_rows: DataFrame, onward: Onward) -> Iterator[DataFrame]:
    """Messages without a value, for rows that are deleted and for rows that `where` no longer chooses."""
    from pyspark.sql import functions

    current_keys = current_rows.selectExpr(*(f"{identifier(column.name)} AS `there.{column.name}`" for column in onward.keys))
    # The key of a total can be null, which is a group like any other.
    condition = " AND ".join(f"{identifier(column.name)} <=> `there.{column.name}`" for column in onward.keys)
    for old_rows in (committed.changes.deleted(committed.columns), committed.changes.before()):
        if old_rows is not None:
            rows = old_rows.where(onward.where or "true").join(current_keys, functions.expr(condition), "left_anti")
            yield rows.selectExpr(_key(onward), "CAST(NULL AS BINARY) AS value", *_place(committed, is_deleted=True))


def _left(committed: FollowInput, messages: DataFrame) -> Iterator[DataFrame]:
    """Messages without a value, for keys that the topic has from an earlier table or another `where` and that this first step
    does not send. A later step sends the messages of its own keys again."""
    from framework.features.followers import _kafka_sink as kafka_sink

    keys = kafka_sink.sent_keys(messages.sparkSession, committed.turn, committed.secrets)
    if keys is not None:
        no_row = (
            "xxhash64(key) | shiftleft(1L, 63)"  # it identifies a repeat, and is the id of no row, since row ids are not negative
        )
        left_keys = keys.join(messages.select("key"), "key", "left_anti").selectExpr("*", f"{no_row} AS {ROW}")
        yield left_keys.selectExpr("key", "CAST(NULL AS BINARY) AS value", *_place(committed, is_deleted=True))


def _key(onward: Onward) -> str:
    """SQL of a message's key: the text of the column or, for several columns, a JSON object."""
    if not onward.keys:
        return "CAST(NULL AS BINARY) AS key"
    first_column = onward.keys[0]
    if _is_object(onward):
        return f"CAST({_value(onward.keys)} AS BINARY) AS key"
    return (
        f"CAST(CAST({identifier(first_column.name)} AS STRING) AS BINARY) AS key"
        if first_column.type != BINARY
        else f"{identifier(first_column.name)} AS key"
    )


def _value(columns: tuple[Column, ...]) -> str:
    options = ", ".join(f"{literal(name)}, {literal(text)}" for name, text in _JSON.items())
    return f"to_json(struct({', '.join(identifier(column.name) for column in columns)}), map({options}))"


def _place(committed: FollowInput, is_deleted: bool = False) -> Iterator[str]:
    """SQL of the headers that identify a repeat, and of the columns that order the messages. A deleted row has the step's last
    commit."""
    from framework.features.followers import _kafka_sink as kafka_sink

    commit = f"CAST({committed.until} AS BIGINT)" if is_deleted else f"coalesce({COMMIT}, {committed.until})"
    # A row that a rollback brings back has the commit of long ago, and is no repeat.
    commit_header = commit if committed.grows else f"concat({commit}, {literal(f'-{committed.step.until}')})"
    headers = {
        "sluice-table": literal(committed.table.uuid), "sluice-commit": commit_header, "sluice-row": ROW,
        kafka_sink.SENDER: literal(committed.turn.sender),
    }  # fmt: skip
    structs = (f"struct({literal(name)} AS key, CAST(CAST({sql} AS STRING) AS BINARY) AS value)" for name, sql in headers.items())
    yield f"array({', '.join(structs)}) AS headers"
    yield f"{commit} AS {COMMIT}"
    yield ROW
