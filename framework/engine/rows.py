"""An offset range becomes rows: one lazy frame of Spark SQL expressions, the same every time it is run.

Cost: each message is fetched, decoded and walked once. Bad rows come out of the same pass, as long as they fit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from framework.engine.protocol import Range
from framework.engine.secrets import reveal
from framework.errors import BatchError
from framework.plan.model import EVENT_TIME, Fault, Pipeline, SecretStore, Step
from framework.plan.rows import named, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

CARRIED = 64 << 20  # bytes of bad rows that a batch's only pass may bring along
_MOST_PER_ROW = 64 << 10
_END = f"_sluice_end_{token_hex(8)}"
_INLINED = 40  # columns up to which a message is parsed in the projection that uses it
_TRAVELLING = (
    "fault int, topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>, dropped boolean"
)
_KAFKA = ("_kafka_partition", "_kafka_offset", "_kafka_timestamp")
_JAAS = "org.apache.kafka.common.security.{module} required username={username} password={password};"


@dataclass(frozen=True)
class Frame:
    """What a batch writes: `good` to the table; `observed` says after the write what else there was. `bad` is read only where
    the bad rows did not fit into the observation."""

    good: DataFrame
    bad: DataFrame
    observed: Observation


@dataclass(frozen=True)
class Counted:
    """What one pass over a batch found. `carried` are its bad rows, which stay in the JVM; of `too_large` among them the bytes
    are missing."""

    read: int
    filtered: int
    bad: int
    carried: DataFrame | None
    too_large: int


def frame(spark: SparkSession, pipeline: Pipeline, range_: Range, secrets: SecretStore, carry: bool = True) -> Frame:
    """With `carry`, bad rows that are too large for one pass travel without their bytes and are counted as such."""
    from pyspark.sql import Observation

    # Steps that can neither drop nor fail a row come after the observation: what is observed is copied once.
    settled = max((at for at, step in enumerate(pipeline.steps, 1) if step.faults or step.keep), default=0)
    bad = _travelling(pipeline, range_, carry)
    made = _decode(read(spark, pipeline, range_, secrets), pipeline, bad, carry_raw=settled > 0)
    for step in pipeline.steps[:settled]:
        made = _step(made, step, pipeline, bad)
    observed = Observation()
    made = made.observe(observed, *_observations(pipeline, carry))
    good = made.where("_sluice_bad IS NULL AND _sluice_keep" if "_sluice_keep" in made.columns else "_sluice_bad IS NULL")
    for step in pipeline.steps[settled:]:
        good = _step(good, step, pipeline, bad)
    good = good.selectExpr(*(named(column.name) for column in pipeline.table.columns))
    return Frame(good, made.where("_sluice_bad IS NOT NULL").select("_sluice_bad.*"), observed)


def _observations(pipeline: Pipeline, carry: bool) -> list[Any]:
    from pyspark.sql import functions

    found = {"read": "count(1)"}
    if any(step.keep for step in pipeline.steps):
        found["filtered"] = "count_if(NOT _sluice_keep AND _sluice_bad IS NULL)"
    if carry and pipeline.bad_rows != "drop":
        found["carried"] = "collect_list(_sluice_bad)"
        found["too_large"] = "count_if(_sluice_bad.dropped)"
    else:
        found["bad"] = "count_if(_sluice_bad IS NOT NULL)"
    return [functions.expr(sql).alias(name) for name, sql in found.items()]


def counted(spark: SparkSession, observed: Observation) -> Counted:
    """What was observed. As Python objects ten thousand bad rows would take longer than writing them does."""
    from pyspark.sql import DataFrame

    jvm: Any = spark._jvm
    row = cast(Any, observed)._jo.getRow()
    found = {name: row.get(at) for at, name in enumerate(row.schema().fieldNames()) if name != "carried"}
    carried = None
    bad = found.get("bad", 0)
    if "bad" not in found:
        listed = row.getList(row.fieldIndex("carried"))
        bad = listed.size()
        schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_TRAVELLING)
        carried = DataFrame(spark._jsparkSession.createDataFrame(listed, schema), spark).coalesce(1)
    return Counted(found["read"], found.get("filtered", 0), bad, carried, found.get("too_large", 0))


@contextmanager
def named_errors(pipeline: Pipeline) -> Iterator[None]:
    """What Spark throws while it reads and writes, by a name that says what to do."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    smaller = "give `engine` more `memory`, or the pipeline a smaller `batch: {rows: …}`; nothing of this batch was published"
    try:
        yield
    except Py4JError as error:
        if not isinstance(error, Py4JJavaError):
            raise BatchError("spark-ended", "Spark ended while it worked", smaller) from None
        if "OutOfMemoryError" in str(error):
            raise BatchError("out-of-memory", "Spark ran out of memory", smaller) from None
        _name(pipeline, error)
        raise
    except PySparkException as error:
        _name(pipeline, error)
        raise


def _name(pipeline: Pipeline, error: Exception) -> None:
    said = str(error)
    if any(text in said.lower() for text in ("data loss", "data may have been lost", "kafka_data_loss")):
        message = f"Kafka lost messages of {pipeline.topic.kafka_name} while they were read"
        raise BatchError("messages-gone", message, "run again: what is missing is then named") from None
    if "No space left on device" in said:
        message = "the disk is full; nothing of this batch was published"
        raise BatchError("disk-full", message, "free some space and run again") from None


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


def bad_rows(pipeline: Pipeline, batch: int, bad: DataFrame) -> DataFrame:
    """Rows of the bad rows' table, from travelling bad rows: what is said of each is looked up here, off the fast path."""
    faults, decoding = pipeline.faults, pipeline.topic.decoding
    lookup = {part: ", ".join(quoted(str(getattr(fault, part))) for fault in faults) for part in ("stage", "code", "message")}
    made = bad.selectExpr("*", *(f"element_at(array({values}), fault + 1) AS {part}" for part, values in lookup.items()))
    said = "message"
    if decoding.explain:
        made = made.selectExpr("*", f"CASE WHEN code = 'undecodable' THEN {_explained(decoding.explained)} END AS _sluice_parsed")
        cases = " ".join(f"WHEN {when} THEN {says}" for when, says in decoding.explain)
        said = f"CASE WHEN code = 'undecodable' THEN {_explained(f'CASE {cases} ELSE message END')} ELSE message END"
    return made.selectExpr(
        f"{batch} AS batch", "stage", "code", f"{said} AS message", "topic", "partition", "offset", "timestamp", "headers",
        "CAST(NULL AS INT) AS schema_id", "key", "value",
    )  # fmt: skip


def _explained(sql: str) -> str:
    return _inlined(sql).replace("_sluice_value", "value")


def _decode(messages: DataFrame, pipeline: Pipeline, bad: str, carry_raw: bool) -> DataFrame:
    """One projection that parses, converts and judges. The parse stands in it many times and is computed once (common
    subexpressions are): as a column of its own it would be copied for each message, and so would the message's bytes, which
    are wanted of bad rows only. With very many columns the plan would be too large for that."""
    decoding = pipeline.topic.decoding
    headers = "headers" if "headers" in messages.columns else "CAST(NULL AS array<struct<key:string,value:binary>>)"
    raw = {"_sluice_key": "key", "_sluice_value": "value", "_sluice_headers": headers}
    event_time = dict(decoding.columns)[pipeline.topic.event_time] if pipeline.topic.event_time else "_kafka_timestamp"
    found = {
        **{name: name for name in _KAFKA},
        **({name: name for name in ("_sluice_key", "_sluice_value", "_sluice_headers")} if carry_raw else {}),
        **{named(name): sql for name, sql in decoding.columns},
        **({EVENT_TIME: event_time} if any(EVENT_TIME in step_sql for step_sql in _texts(pipeline)) else {}),
        "_sluice_bad": _found_bad(decoding.faults, 0, bad),
    }
    if any(step.keep for step in pipeline.steps):
        found["_sluice_keep"] = "true"
    made = messages.selectExpr(
        *(f"{sql} AS {name}" for name, sql in raw.items()),
        "partition AS _kafka_partition", "offset AS _kafka_offset", "timestamp AS _kafka_timestamp",
    )  # fmt: skip
    parse = decoding.parse
    if parse and len(decoding.columns) > _INLINED:
        made = made.selectExpr("*", f"{_inlined(parse)} AS _sluice_decoded")
        parse = None
    return made.selectExpr(*(f"{_inlined(sql, parse)} AS {name}" for name, sql in found.items()))


def _inlined(sql: str, parse: str | None = None) -> str:
    sql = sql.replace("_sluice_decoded", f"({parse})") if parse else sql
    return _marked(sql).replace("_sluice_text", "CAST(_sluice_value AS STRING)")


def _marked(sql: str) -> str:
    """The mark behind a message's end is one that no message can know."""
    return sql.replace("_sluice_end", _END)


def _texts(pipeline: Pipeline) -> Iterator[str]:
    for step in pipeline.steps:
        yield from (sql for _, sql in step.assign)
        yield from (fault.when for fault in step.faults)
        yield step.keep or ""


def _step(made: DataFrame, step: Step, pipeline: Pipeline, bad: str) -> DataFrame:
    """The columns a step sets, and what it finds wrong with a row that is still kept and sound."""
    assign = {named(name): sql for name, sql in step.assign}
    columns = {named(name): named(name) for name in made.columns} | assign
    if step.faults:
        found = _found_bad(step.faults, pipeline.faults.index(step.faults[0]), bad)
        sound = "_sluice_bad IS NULL AND _sluice_keep" if "_sluice_keep" in made.columns else "_sluice_bad IS NULL"
        columns["`_sluice_bad`"] = f"CASE WHEN {sound} THEN {found} ELSE _sluice_bad END"
    if step.keep:
        columns["`_sluice_keep`"] = f"_sluice_keep AND coalesce({step.keep}, false)"
    return made.selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()))


def _found_bad(faults: tuple[Fault, ...], index: int, bad: str) -> str:
    """The bad row, if one of the faults is there: with the number of the first, counted over the whole pipeline."""
    any_ = " OR ".join(f"({fault.when})" for fault in faults)
    first = "CASE " + " ".join(f"WHEN {fault.when} THEN {index + at}" for at, fault in enumerate(faults)) + " END"
    return f"CASE WHEN {any_} THEN {bad.replace('_sluice_fault', first)} END"


def _travelling(pipeline: Pipeline, range_: Range, carry: bool) -> str:
    """A bad row on its way: with its bytes, unless all bad rows of a batch of that size could be too much for memory."""
    # In steps of two: another number would be other code, which Java compiles anew for each batch.
    most = min(_MOST_PER_ROW, max(256, CARRIED >> range_.size.bit_length()))
    size = "coalesce(octet_length(_sluice_value), 0) + coalesce(octet_length(_sluice_key), 0)"
    large = f"{size} > {most}" if carry else "false"
    bytes_ = ", ".join(f"'{name}', IF({large}, NULL, _sluice_{name})" for name in ("key", "value", "headers"))
    return (
        f"named_struct('fault', _sluice_fault, 'topic', {quoted(pipeline.topic.kafka_name)}, 'partition', _kafka_partition,"
        f" 'offset', _kafka_offset, 'timestamp', _kafka_timestamp, {bytes_}, 'dropped', {large})"
    )


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
