"""An offset range becomes rows: one lazy frame of Spark SQL expressions, the same every time it is run.

Cost: each message is fetched, decoded and walked once. Bad rows come out of the same pass, as long as they fit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.engine.protocol import Range
from framework.engine.secrets import reveal
from framework.errors import BatchError
from framework.plan.model import EVENT_TIME, Fault, Pipeline, SecretStore
from framework.plan.rows import named, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

CARRIED = 64 << 20  # bytes of bad rows that a batch's only pass may bring along
_MOST_PER_ROW = 64 << 10
_KAFKA = ("_kafka_partition", "_kafka_offset", "_kafka_timestamp")
_JAAS = "org.apache.kafka.common.security.{module} required username={username} password={password};"


@dataclass(frozen=True)
class Frame:
    """What a batch writes: `good` to the table; `observed` says after the write what else there was; `all` holds bad rows
    too, in its column `_sluice_bad`."""

    good: DataFrame
    all: DataFrame
    observed: Observation


@dataclass(frozen=True)
class Counted:
    """What one pass over a batch found. `bad` are the bad rows, unless some were too large to carry along."""

    read: int
    filtered: int
    bad: int
    carried: tuple[Any, ...]
    too_large: int


def frame(spark: SparkSession, pipeline: Pipeline, range_: Range, secrets: SecretStore, carry: bool = True) -> Frame:
    """With `carry`, bad rows that are too large for one pass travel without their bytes and are counted as such."""
    from pyspark.sql import Observation, functions

    made = _decode(read(spark, pipeline, range_, secrets), pipeline)
    for step in pipeline.steps:
        made = _step(made, step, pipeline)
    made = made.selectExpr(
        *(named(column.name) for column in pipeline.table.columns),
        "_sluice_keep",
        f"CASE WHEN _sluice_fault IS NOT NULL THEN {_travelling(pipeline, range_, carry)} END AS _sluice_bad",
    )
    observed = Observation()
    made = made.observe(
        observed,
        functions.expr("count(1)").alias("read"),
        functions.expr("count_if(NOT _sluice_keep AND _sluice_bad IS NULL)").alias("filtered"),
        functions.expr("count_if(_sluice_bad.dropped)").alias("too_large"),
        functions.expr("count_if(_sluice_bad IS NOT NULL)").alias("bad"),
        functions.expr(f"collect_list({'_sluice_bad' if carry and pipeline.bad_rows != 'drop' else 'CAST(NULL AS INT)'})").alias("carried"),
    )
    columns = [functions.col(named(column.name)) for column in pipeline.table.columns]
    return Frame(made.where("_sluice_bad IS NULL AND _sluice_keep").select(*columns), made, observed)


def counted(observed: Observation) -> Counted:
    found = observed.get
    return Counted(found["read"], found["filtered"], found["bad"], tuple(found["carried"]), found["too_large"])


@contextmanager
def named_errors(pipeline: Pipeline) -> Iterator[None]:
    """What Spark throws while it reads and writes, by a name that says what to do."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = str(error)
        topic = pipeline.topic.kafka_name
        if "data loss" in said.lower() or "data may have been lost" in said.lower() or "KAFKA_DATA_LOSS" in said:
            raise BatchError(
                "messages-gone", f"Kafka lost messages of {topic} while they were read", "run again: what is missing is then named"
            ) from None
        if "No space left on device" in said:
            raise BatchError("disk-full", "the disk is full; nothing of this batch was published", "free some space and run again") from None
        raise


def read(spark: SparkSession, pipeline: Pipeline, range_: Range, secrets: SecretStore) -> DataFrame:
    topic = pipeline.topic
    options = {
        "kafka.bootstrap.servers": topic.cluster.bootstrap,
        "assign": json.dumps({topic.kafka_name: sorted(range_.starts)}),
        "startingOffsets": json.dumps({topic.kafka_name: range_.starts}),
        "endingOffsets": json.dumps({topic.kafka_name: range_.ends}),
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "includeHeaders": "true" if topic.headers or pipeline.bad_rows == "quarantine" else "false",
        # Each partition ends with a fetch that waits this long for messages that do not come.
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.poll.records": "20000",
        "kafkaConsumer.pollTimeoutMs": "30000",
        **_login(pipeline, secrets),
    }
    return spark.read.format("kafka").options(**options).load()


def bad_rows(spark: SparkSession, pipeline: Pipeline, bad: DataFrame) -> DataFrame:
    """Rows of the bad rows' table, from rows of the columns of `_sluice_bad`: what is said of each is looked up here, off the fast path."""
    faults = pipeline.faults
    lookup = {part: ", ".join(quoted(str(getattr(fault, part))) for fault in faults) for part in ("stage", "code", "message")}
    made = bad.selectExpr(
        *(f"element_at(array({values}), fault + 1) AS {part}" for part, values in lookup.items()),
        "topic", "partition", "offset", "timestamp", "headers", "key", "value",
        "CAST(value AS STRING) AS _sluice_text", "value AS _sluice_value",
    )  # fmt: skip
    explain = pipeline.topic.decoding.explain
    if explain:
        cases = " ".join(f"WHEN {when} THEN {says}" for when, says in explain)
        made = made.selectExpr(
            "*", f"CASE WHEN code = 'undecodable' AND stage = 'value' THEN CASE {cases} END ELSE message END AS _said"
        )
    said = "_said" if explain else "message"
    return made.selectExpr(
        "stage", "code", f"{said} AS message", "topic", "partition", "offset", "timestamp", "headers",
        "CAST(NULL AS INT) AS schema_id", "key", "value",
    )  # fmt: skip


def carried_frame(spark: SparkSession, counted: Counted) -> DataFrame:
    schema = (
        "fault int, topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
        " headers array<struct<key: string, value: binary>>, dropped boolean"
    )
    return spark.createDataFrame(list(counted.carried), schema).coalesce(1)


def _decode(messages: DataFrame, pipeline: Pipeline) -> DataFrame:
    decoding = pipeline.topic.decoding
    headers = "headers AS _sluice_headers" if "headers" in messages.columns else "CAST(NULL AS array<struct<key:string,value:binary>>) AS _sluice_headers"
    kept = ["_sluice_key", "_sluice_value", "_sluice_headers", *_KAFKA]
    made = messages.selectExpr(
        "key AS _sluice_key", "value AS _sluice_value", "CAST(value AS STRING) AS _sluice_text", headers,
        "partition AS _kafka_partition", "offset AS _kafka_offset", "timestamp AS _kafka_timestamp",
    )  # fmt: skip
    parse = f"{decoding.parse} AS _sluice_decoded" if decoding.parse else "_sluice_text AS _sluice_decoded"
    text = [] if decoding.parse and not _reads_text(decoding.faults) else ["_sluice_text"]
    made = made.selectExpr(*kept, *text, f"({decoding.readable}) AS _sluice_readable", parse)
    columns = [f"{sql} AS {named(name)}" for name, sql in decoding.columns]
    made = made.selectExpr(*kept, *text, "_sluice_readable", "_sluice_decoded", *columns)
    event_time = named(pipeline.topic.event_time) if pipeline.topic.event_time else "_kafka_timestamp"
    return made.selectExpr(
        *kept,
        *(named(name) for name, _ in decoding.columns),
        f"{event_time} AS {EVENT_TIME}",
        f"{_first(decoding.faults, 0)} AS _sluice_fault",
        "true AS _sluice_keep",
    )


def _step(made: DataFrame, step: Any, pipeline: Pipeline) -> DataFrame:
    """The columns a step sets, and what it finds wrong with a row that is still kept and sound."""
    first = pipeline.faults.index(step.faults[0]) if step.faults else 0
    fault = f"coalesce(_sluice_fault, CASE WHEN _sluice_keep THEN {_first(step.faults, first)} END)" if step.faults else "_sluice_fault"
    keep = f"_sluice_keep AND coalesce({step.keep}, false)" if step.keep else "_sluice_keep"
    assign: Mapping[str, str] = dict(step.assign)
    others = [named(column.name) for column in step.columns if column.name not in assign]
    return made.selectExpr(
        "_sluice_key", "_sluice_value", "_sluice_headers", *_KAFKA, EVENT_TIME,
        *others,
        *(f"{sql} AS {named(name)}" for name, sql in assign.items()),
        f"{fault} AS _sluice_fault",
        f"{keep} AS _sluice_keep",
    )  # fmt: skip


def _first(faults: tuple[Fault, ...], index: int) -> str:
    """The number of the first fault that is there, counted over the whole pipeline."""
    return "CASE " + " ".join(f"WHEN {fault.when} THEN {index + at}" for at, fault in enumerate(faults)) + " END"


def _travelling(pipeline: Pipeline, range_: Range, carry: bool) -> str:
    """A bad row on its way: with its bytes, unless all bad rows of a batch of that size could be too much for memory."""
    most = min(_MOST_PER_ROW, max(256, CARRIED // max(1, range_.size)))
    size = "coalesce(octet_length(_sluice_value), 0) + coalesce(octet_length(_sluice_key), 0)"
    large = f"{size} > {most}" if carry else "false"
    bytes_ = ", ".join(f"'{name}', IF({large}, NULL, _sluice_{name})" for name in ("key", "value", "headers"))
    return (
        f"named_struct('fault', _sluice_fault, 'topic', {quoted(pipeline.topic.kafka_name)}, 'partition', _kafka_partition,"
        f" 'offset', _kafka_offset, 'timestamp', _kafka_timestamp, {bytes_}, 'dropped', {large})"
    )


def _reads_text(faults: tuple[Fault, ...]) -> bool:
    return any("_sluice_text" in fault.when for fault in faults)


def _login(pipeline: Pipeline, secrets: SecretStore) -> dict[str, str]:
    security = pipeline.topic.cluster.security
    if security.protocol == "PLAINTEXT":
        return {}
    options = {"kafka.security.protocol": security.protocol}
    if security.mechanism and security.username and security.password:
        module = "plain.PlainLoginModule" if security.mechanism == "PLAIN" else "scram.ScramLoginModule"
        username, password = (json.dumps(reveal(value, secrets)) for value in (security.username, security.password))
        options["kafka.sasl.mechanism"] = security.mechanism
        options["kafka.sasl.jaas.config"] = _JAAS.format(module=module, username=username, password=password)
    return options
