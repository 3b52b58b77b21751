"""Some messages of a pipeline, shown after each step, computed by the same frames as a run. Nothing is written: no table, no branch,
no attempt, no position.

Cost: one Spark job over some offsets of each partition, and more jobs where these offsets have no message. The messages of bad rows are
computed by another job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, cast

from framework.base import iso_times
from framework.base.errors import RefusedError
from framework.base.types import TIMESTAMP, TIMESTAMP_NTZ, Decimal
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.publish.pinning import measured
from framework.core.rows import bad_rows, own_columns, reading, stepping
from framework.core.rows.pins import Pins
from framework.core.rules.protocol import Position, Range, TopicState, next_range
from framework.core.sources.source import SourceReader
from framework.core.spark import scratch_session
from framework.core.spark.reading_errors import named_errors
from framework.operations.observe.next_run import next_position
from framework.plan import KAFKA_COLUMNS, KAFKA_TOPIC, Column, Keyed, Pipeline, Plan
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Which = Literal["next", "earliest", "latest"]

_BEGINNING = Position(attempt="", batch=0, cluster="", topics={}, ends={})
_MIN_OFFSETS = 20  # offsets that are read at least, since not each of them has a message
_BYTES = 16 << 20
HIDDEN = "(hidden)"  # stands for values before the last step that masks, and for messages
_GROWTH = 50  # how many times as many offsets are read next, if these had no message
_CONF = {"spark.sql.codegen.wholeStage": "false"}  # a handful of rows is never worth compiling for
_AS_TEXT = (
    "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\","
    " 'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A message's row: its columns, as JSON has them, after reading and after each step that it reached."""

    item: str | None  # the number of the row, where a step makes several rows from a list
    after: tuple[Mapping[str, Any], ...]
    fate: Literal["lands", "deletes", "filtered", "bad"]
    code: str = ""  # of a bad row, as the bad rows' table would have it
    stage: str = ""
    message: str = ""
    unexpected: tuple[str, ...] = ()  # expectations that warn or stop, and that the row fails


@dataclass(frozen=True, kw_only=True)
class PreviewedMessage:
    """A message or a table's row with its outcome. The place in Kafka of a table's row may be unknown."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp: str | None
    key: bytes | None
    value: bytes | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Preview:
    """Previewed messages. `which` is not `next` where nothing waits, or where a run would stop because of `refused`."""

    messages: tuple[PreviewedMessage, ...]
    which: Which
    waiting: int | None
    refused: RefusedError | None = None


def run_preview(plan: Plan, pipeline: Pipeline, count: int, which: Which = "next") -> Preview:
    """Previews messages with a Spark session of its own, which starts fast and ends with the preview."""
    with _quick(plan, pipeline) as quick_plan:
        context = Context(quick_plan, warm=plan)
        if pipeline.topics:  # which may be a select over large tables
            context.expect(count)
        try:
            return preview(context, pipeline, count, which)
        finally:
            context.stop()


@contextmanager
def _quick(plan: Plan, pipeline: Pipeline) -> Iterator[Plan]:
    """The plan with an engine that starts fast and leaves nothing behind."""
    with scratch_session.folder("preview"):
        # Spark would create the folder of a catalog that has no tables yet.
        catalogs = plan.catalogs if pipeline.read_tables or pipeline.joins or pipeline.bounds else ()
        yield replace(plan, engine=scratch_session.engine(plan.engine, _CONF, catalogs=True), catalogs=catalogs)


def preview(context: Context, pipeline: Pipeline, count: int, which: Which = "next") -> Preview:
    """Previews the next messages of a pipeline, or the first or last ones of its topics; if it reads a table, any of its rows."""
    pipeline = context.schemas.current(pipeline)
    context.provide_keys(pipeline)
    source = context.source(pipeline)
    if pipeline.read_tables:
        range_ = Range({}, source.topic_state().ends, 0)
        return Preview(_previewed(context, pipeline, source.read(context.spark, range_, 0).limit(count)), "next", None)
    refusal, position, topic_state = _asked(pipeline, source, which)
    offset_limit = max(_MIN_OFFSETS, 4 * count)
    next_batch = next_range(position, topic_state, offset_limit) if position else None
    waiting_count = None if refusal or which != "next" else next_batch.waiting if next_batch else 0
    if position is None or next_batch is None:
        return Preview(
            _any_of(context, pipeline, _ranges_back(topic_state, offset_limit), count, "desc"), "latest", waiting_count, refusal
        )
    return Preview(
        _any_of(context, pipeline, _ranges_from(position, topic_state, offset_limit), count, "asc"), which, waiting_count
    )


def _asked(pipeline: Pipeline, source: SourceReader, which: Which) -> tuple[RefusedError | None, Position | None, TopicState]:
    """Returns the refusal of a run, the position at which to begin, and the topics' state."""
    try:
        if which == "next":
            return None, *next_position(pipeline, table_state.state(pipeline.table), source)
    except RefusedError as error:
        return error, None, source.topic_state()
    topic_state = source.topic_state()
    return None, replace(_BEGINNING, ends=topic_state.starts) if which == "earliest" else None, topic_state


def _ranges_from(position: Position, topic_state: TopicState, offset_limit: int) -> Iterator[Range]:
    """Ranges of offsets from a position on, each larger than the one before."""
    while (range_ := next_range(position, topic_state, offset_limit)) is not None:
        yield range_
        position, offset_limit = replace(position, ends=range_.ends), offset_limit * _GROWTH


def _ranges_back(topic_state: TopicState, offset_limit: int) -> Iterator[Range]:
    """The last `offset_limit` offsets of each partition, since each can have the newest message; then ever larger ranges before them."""
    ends = topic_state.ends
    while True:
        starts = {partition: max(topic_state.starts[partition], end - offset_limit) for partition, end in ends.items()}
        if starts == ends:
            return
        yield Range(starts, ends, 0, topics=topic_state.topics)
        ends, offset_limit = starts, offset_limit * _GROWTH


def _any_of(
    context: Context, pipeline: Pipeline, ranges: Iterator[Range], count: int, order: Literal["asc", "desc"]
) -> tuple[PreviewedMessage, ...]:
    """The oldest or newest messages of the first range that has any."""
    for range_ in ranges:
        read = context.source(pipeline).read(context.spark, range_, 0)
        # Without what decoders made of them: a schema that is learned later makes other decoders.
        undecoded = read.drop(*(name for name, _ in pipeline.decoding.structs))
        if messages := _previewed(context, pipeline, _few(undecoded, count, order)):
            return messages
    return ()


def _few(messages: DataFrame, count: int, order: Literal["asc", "desc"]) -> DataFrame:
    """At most `count` messages and `_BYTES` bytes, so that copies for each step fit into memory; at least one message."""
    from pyspark.sql import Window, functions

    places = [getattr(functions.col(name), order)() for name in ("timestamp", "topic", "partition", "offset")]
    size = " + ".join(f"coalesce(octet_length({sql}), 0)" for sql in ("value", "key", "CAST(headers AS STRING)"))
    total = functions.sum(functions.expr(size)).over(Window.orderBy(*places))
    first_messages = messages.orderBy(*places).limit(count).withColumn("_sluice_before", total - functions.expr(size))
    return first_messages.where(f"_sluice_before < {_BYTES}").drop("_sluice_before")


def _previewed(context: Context, pipeline: Pipeline, messages: DataFrame) -> tuple[PreviewedMessage, ...]:
    """The messages with their outcomes, in the order of their times."""
    with named_errors(pipeline):
        rows = [row.asDict() for row in _frame(messages, pipeline).collect()]
    unknown_schemas = {row["_sluice_unknown"] for row in rows if row.get("_sluice_unknown") is not None}
    if unknown_schemas:  # the registry is asked for them once
        return _previewed(context, context.schemas.learn(pipeline, unknown_schemas), messages)
    with named_errors(pipeline):
        faults = _faults(context.spark, pipeline, rows)
    by_message: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(rows):
        place = tuple(row.get(column.name) for column in (KAFKA_TOPIC, *KAFKA_COLUMNS))
        # Rows of a table are not grouped by the messages that they once came from.
        by_message.setdefault((index,) if pipeline.read_tables else place, []).append(index)
    results = [_message(pipeline, {index: rows[index] for index in indexes}, faults) for indexes in by_message.values()]
    return tuple(sorted(results, key=_place))


def _place(message: PreviewedMessage) -> tuple[datetime, str, int, int]:
    """A key that sorts messages by time, since their text does not sort. A producer may write a time that does not exist."""
    time = datetime.min.replace(tzinfo=timezone.utc)
    with suppress(ValueError):
        time = iso_times.read(message.timestamp) if message.timestamp else time
    return time, message.topic, message.partition or 0, message.offset or 0


def _frame(messages: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The frame, with a column for each step that has each row as text after it."""
    pins = Pins(measured=measured(pipeline))
    bad, messages = bad_rows.travelling(pipeline, 1, carry=False), own_columns.with_open_since(messages, pipeline, 0)
    rows = reading.rows_of(messages, pipeline, bad, carry_raw=True)
    rows = _with_snapshot(rows, 0, _columns_after(pipeline, 0))
    for number, step in enumerate(pipeline.steps, 1):
        rows = _with_snapshot(stepping.apply(rows, step, pipeline, bad, pins), number, _columns_after(pipeline, number))
    fails = (
        f"coalesce({own_columns.is_checked(rows.columns)} AND NOT {expectation.holds}, false)"
        for expectation in pipeline.expectations
    )
    columns = {name: name for name in rows.columns if name.startswith(("_kafka_", "_sluice_"))}
    if "_kafka_timestamp" in columns:
        columns["_kafka_timestamp"] = "date_format(_kafka_timestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"
    if isinstance(rule := pipeline.table.rule, Keyed):
        columns[own_columns.DELETE] = rule.deletes or "false"
    columns["_sluice_fails"] = f"array({', '.join(fails)})"
    return rows.selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()))


def _columns_after(pipeline: Pipeline, step: int) -> tuple[Column, ...]:
    """The columns after reading, which is step 0, or after a step."""
    if step:
        return tuple(column for column in pipeline.steps[step - 1].columns if not column.name.startswith("_sluice_"))
    return pipeline.read_columns


def _with_snapshot(rows: DataFrame, number: int, columns: Sequence[Column]) -> DataFrame:
    # A decimal as text keeps all its digits.
    values = (
        f"CAST({identifier(column.name)} AS STRING)" if isinstance(column.type, Decimal) else identifier(column.name)
        for column in columns
    )
    parts = ", ".join(f"{literal(column.name)}, {value}" for column, value in zip(columns, values, strict=True))
    keep = "_sluice_keep" if "_sluice_keep" in rows.columns else "true"
    snapshot = f"named_struct('bad', _sluice_bad IS NOT NULL, 'keep', {keep}, 'columns', named_struct({parts}))"
    return rows.selectExpr("*", f"to_json({snapshot}, {_AS_TEXT}) AS _sluice_seen{number}")


def _faults(spark: SparkSession, pipeline: Pipeline, rows: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
    """The stage, code and message of each bad row among these rows, as a run writes them."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    # A run's message depends on neither offset nor time; here the offset is the row's number.
    bad_values = [
        {**row["_sluice_bad"].asDict(recursive=True), "offset": index, "timestamp": None}
        for index, row in enumerate(rows)
        if row["_sluice_bad"] is not None
    ]
    if not bad_values:
        return {}
    # Through Arrow: a list of Python's objects would pass through a Python process, which takes longer than everything else.
    table = pyarrow.Table.from_pylist(bad_values, to_arrow_schema(cast(StructType, StructType.fromDDL(bad_rows.TYPE))))
    frame = spark.createDataFrame(table).coalesce(1)
    return {row.offset: row for row in bad_rows.table_rows(pipeline, 0, frame).collect()}


def _message(pipeline: Pipeline, message_rows: Mapping[int, Mapping[str, Any]], faults: Mapping[int, Any]) -> PreviewedMessage:
    first_row = next(iter(message_rows.values()))
    key, value = (None if first_row.get(name) is None else bytes(first_row[name]) for name in ("_sluice_key", "_sluice_value"))
    if pipeline.mask_keys:
        key, value = (part and HIDDEN.encode() for part in (key, value))
    partition, offset, timestamp = (first_row.get(column.name) for column in KAFKA_COLUMNS)
    rows = [_row(pipeline, row, faults.get(index)) for index, row in message_rows.items()]
    rows.sort(key=lambda row: [int(number) for number in (row.item or "0").split(".")])
    topic = first_row.get(KAFKA_TOPIC.name, pipeline.sources[0])
    return PreviewedMessage(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=iso_times.of_sql(timestamp) if timestamp else None,
        key=key,
        value=None if pipeline.read_tables else value,
        rows=tuple(rows),
    )


def _row(pipeline: Pipeline, row: Mapping[str, Any], fault: Any) -> Row:
    after: list[Mapping[str, Any]] = []
    mask_step = max((number for number, step in enumerate(pipeline.steps, 1) if step.masks), default=0)
    item = row.get("_sluice_item") or None
    for number in range(len(pipeline.steps) + 1):
        snapshot = json.loads(row[f"_sluice_seen{number}"])
        if snapshot["bad"]:
            return Row(item=item, after=tuple(after), fate="bad", code=fault.code, stage=fault.stage, message=fault.message)
        if not snapshot["keep"]:
            return Row(item=item, after=tuple(after), fate="filtered")
        columns = _columns_after(pipeline, number)
        after.append(
            {
                column.name: HIDDEN if number < mask_step else _value(column, snapshot["columns"][column.name])
                for column in columns
            }
        )
    fails = zip(pipeline.expectations, row["_sluice_fails"], strict=True)
    unexpected = tuple(expectation.name for expectation, is_failing in fails if is_failing)
    return Row(item=item, after=tuple(after), fate="deletes" if row.get(own_columns.DELETE) else "lands", unexpected=unexpected)


def _value(column: Column, value: Any) -> Any:
    return iso_times.of_sql(value) if column.type in (TIMESTAMP, TIMESTAMP_NTZ) and value is not None else value
