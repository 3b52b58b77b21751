"""An offset range becomes rows: one lazy frame of Spark SQL expressions, the same every time it is run.

Cost: each message is fetched, decoded and walked once. Bad rows come out of the same pass, as long as they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from framework.model import (
    EVENT_TIME,
    FROM_COLUMNS,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    OLD,
    OPEN,
    Decoding,
    Fault,
    Pipeline,
    State,
    Step,
)
from framework.sql.quote import identifier, literal, substituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

CARRIED = 64 << 20  # bytes of bad rows that a batch's only pass may bring along
_MOST_PER_ROW = 64 << 10
_TRAVELLING = (
    "fault int, cause string, item string, topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>, dropped boolean"
)
# Of rows by keys: whether it deletes those of its key, which of its message it is, and whether it deletes those of all keys.
DELETE, NTH, TRUNCATES = "_sluice_delete", "_sluice_nth", "_sluice_truncates"
ONLY = "_sluice_only"  # of a message that is replayed: which of its rows were bad, where its list is taken apart; '' is the whole
_OWN = (EVENT_TIME, *(column.name for column in FROM_COLUMNS))
_WHOLE = "CAST(NULL AS STRING)"  # a bad row's item where the whole message is bad, and its cause where its fault has none


@dataclass(frozen=True)
class Frame:
    """The rows of a batch: `good` goes to the table; `observed` has the counts after the write."""

    good: DataFrame
    all_rows: DataFrame  # good and bad
    observed: Observation

    @property
    def bad(self) -> DataFrame:
        """The bad rows, read only where they did not fit into the observation."""
        return self.all_rows.where("_sluice_bad IS NOT NULL").select("_sluice_bad.*")


@dataclass(frozen=True)
class Changed:
    """The changes of a batch to a table's rows by their keys; for its other rows the table had newer ones."""

    inserted: int
    updated: int = 0
    deleted: int = 0
    ended: int = 0  # versions

    @property
    def words(self) -> dict[str, int]:
        return {"new": self.inserted, "changed": self.updated, "deleted": self.deleted, "ended": self.ended}


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counts of one pass over a batch. `carried` are its bad rows, which stay in the JVM; `too_large` of them lack their
    bytes."""

    read: int
    rows: int
    filtered: int
    bad: int
    failing: tuple[int, ...]  # rows for which each expectation of the batch does not hold
    carried: DataFrame | None
    too_large: int
    unknown_schemas: frozenset[int] = frozenset()  # ids of schemas that the registry has not been asked for
    changed: Changed | None = None


def _nothing(_state: State) -> DataFrame | None:
    return None


def frame(
    messages: DataFrame,
    pipeline: Pipeline,
    size: int,
    carry: bool = True,
    remembered: Callable[[State], DataFrame | None] = _nothing,
) -> Frame:
    """The rows of so many messages. With `carry`, bad rows that are too large for one pass travel without their bytes and are
    counted as such. `remembered` gives what steps remember of earlier batches."""
    from pyspark.sql import Observation

    # Steps that can neither drop nor fail a row come after the observation: what is observed is copied once.
    settled = max((at for at, step in enumerate(pipeline.steps, 1) if step.faults or step.keep or step.each), default=0)
    if pipeline.expectations:
        settled = len(pipeline.steps)
    bad = _travelling(pipeline, size, carry)
    rows = of_table(messages, pipeline) if pipeline.source else decode(messages, pipeline, bad, carry_raw=settled > 0)
    for step in pipeline.steps[:settled]:
        rows = apply(rows, step, pipeline, bad)
    if ONLY in rows.columns:
        rows = rows.where(_of_bad_item(rows.columns))
    observed = Observation()
    rows = rows.observe(observed, *_observations(pipeline, rows.columns, carry))
    good = rows.where(_is_good(rows.columns))
    for step in pipeline.steps[settled:]:
        good = apply(good, step, pipeline, bad)
    for step in pipeline.steps:  # behind all others: a row that does not land is not remembered
        if step.memory:
            good = step.memory.admit(good, remembered(step.memory.state))
    good = good.selectExpr(*_written(pipeline, good.columns))
    return Frame(good, rows, observed)


def _written(pipeline: Pipeline, columns: list[str]) -> Iterator[str]:
    """SQL of the table's columns and, for rows by keys, of what a row does."""
    keyed = pipeline.table.keyed
    for column in pipeline.table.sent:
        name = identifier(column.name)
        if keyed and keyed.stands_in and column.name == keyed.order[0]:
            # Kafka's time stands in for one that a message without a value does not have.
            name = f"IF(_sluice_tombstone, CAST(_kafka_timestamp AS {column.type.sql}), {name}) AS {name}"
        elif keyed and keyed.truncates and column.name in keyed.keys:
            name = f"IF({TRUNCATES}, NULL, {name}) AS {name}"
        yield name
    if keyed:
        yield f"{keyed.deletes or 'false'} AS {DELETE}"
        item = "transform(split(nullif(_sluice_item, ''), '[.]'), n -> CAST(n AS INT))"
        yield f"{item if '_sluice_item' in columns else 'CAST(NULL AS array<int>)'} AS {NTH}"
        if keyed.truncates:
            yield TRUNCATES


def _observations(pipeline: Pipeline, columns: list[str], carry: bool) -> list[Any]:
    from pyspark.sql import functions

    observed = {"read": "count_if(_sluice_first)" if "_sluice_first" in columns else "count(1)"}
    counts = " AND NOT _sluice_before" if "_sluice_before" in columns else ""
    if "_sluice_first" in columns:
        observed["rows"] = f"count_if({_is_good(columns)}{counts})"
    if "_sluice_keep" in columns:
        observed["filtered"] = f"count_if(NOT _sluice_keep AND _sluice_bad IS NULL{counts})"
    if carry and pipeline.bad_rows != "drop":
        observed["carried"] = "collect_list(_sluice_bad)"
        observed["too_large"] = "count_if(_sluice_bad.dropped)"
    else:
        observed["bad"] = "count_if(_sluice_bad IS NOT NULL)"
    if "_sluice_unknown" in columns:
        observed["unknown"] = "collect_set(_sluice_unknown)"
    for at, expected in enumerate(pipeline.expectations):
        observed[f"expected{at}"] = f"count_if({_is_checked(columns)} AND NOT {expected.holds})"
    return [functions.expr(sql).alias(name) for name, sql in observed.items()]


def _is_good(columns: list[str]) -> str:
    """SQL of whether a row is kept and good so far."""
    return "_sluice_bad IS NULL AND _sluice_keep" if "_sluice_keep" in columns else "_sluice_bad IS NULL"


def _of_bad_item(columns: list[str]) -> str:
    """SQL of whether a row of a message that is replayed was bad, or is part of what was, or holds it."""
    if "_sluice_item" not in columns:
        return "true"
    row = "coalesce(_sluice_item, '')"
    part = f"bad IN ('', {row}) OR startswith({row}, concat(bad, '.')) OR startswith(bad, concat({row}, '.'))"
    return f"{row} = '' OR exists({ONLY}, bad -> {part})"


def _is_checked(columns: list[str], of_tombstones: bool = False) -> str:
    """SQL of whether a row is good and is checked by steps and expectations."""
    checked = f"{_is_good(columns)} AND NOT {OLD}" if OLD in columns else _is_good(columns)
    return f"{checked} AND NOT _sluice_tombstone" if "_sluice_tombstone" in columns and not of_tombstones else checked


def _or_tombstone(columns: list[str], keep: str) -> str:
    """SQL of whether a step keeps a row; no step drops a tombstone."""
    return f"(_sluice_tombstone OR {keep})" if "_sluice_tombstone" in columns else f"({keep})"


def counted(spark: SparkSession, pipeline: Pipeline, observed: Observation) -> Counted:
    """The counts of an observation. The bad rows stay in the JVM: as Python objects, ten thousand would take longer than their write."""
    from pyspark.sql import DataFrame

    jvm: Any = spark._jvm
    row = cast(Any, observed)._jo.getRow()
    counts = {name: row.get(at) for at, name in enumerate(row.schema().fieldNames()) if name not in ("carried", "unknown")}
    carried = None
    bad = counts.get("bad", 0)
    if "bad" not in counts:
        bad_list = row.getList(row.fieldIndex("carried"))
        bad = bad_list.size()
        if bad:
            schema = getattr(jvm, "org.apache.spark.sql.types.StructType").fromDDL(_TRAVELLING)
            carried = DataFrame(spark._jsparkSession.createDataFrame(bad_list, schema), spark).coalesce(1)
    filtered = counts.get("filtered", 0)
    rows = counts.get("rows", counts["read"] - bad - filtered)
    failing = tuple(counts[f"expected{at}"] for at in range(len(pipeline.expectations)))
    unknown_schemas = frozenset(row.getList(row.fieldIndex("unknown"))) if "unknown" in row.schema().fieldNames() else frozenset()
    return Counted(
        read=counts["read"],
        rows=rows,
        filtered=filtered,
        bad=bad,
        failing=failing,
        carried=carried,
        too_large=counts.get("too_large", 0),
        unknown_schemas=unknown_schemas,
    )


def bad_rows(pipeline: Pipeline, batch: int, bad: DataFrame) -> DataFrame:
    """Rows of the bad rows' table, from travelling bad rows: their codes and messages are added here, off the fast path."""
    faults = pipeline.faults
    decoding = Decoding((), ()) if pipeline.source else pipeline.topic.decoding
    lookup = {part: ", ".join(literal(str(getattr(fault, part))) for fault in faults) for part in ("stage", "code", "message")}
    rows = bad.selectExpr("*", *(f"element_at(array({values}), fault + 1) AS {part}" for part, values in lookup.items()))
    rows = rows.selectExpr("*", *(f"{_of_bad_row(sql)} AS {name}" for name, sql in decoding.structs))
    why = " ".join(f"WHEN {at} THEN {_of_bad_row(fault.why)}" for at, fault in enumerate(faults) if fault.why)
    message = "concat_ws(': ', message, cause)"
    message = f"coalesce(CASE fault {why} END, {message})" if why else message
    return rows.selectExpr(
        f"{batch} AS batch", "stage", "code", f"{message} AS message", "item", "topic", "partition", "offset", "timestamp", "headers",
        f"try_cast({_of_bad_row(decoding.schema_id)} AS INT) AS schema_id", "key", "value",
        f"'{OPEN}' AS state", "CAST(NULL AS INT) AS replayed_in",
    )  # fmt: skip


def _of_bad_row(sql: str) -> str:
    return substituted(_plain(sql), {"_sluice_value": "value", "_sluice_key": "key"})


def decode(messages: DataFrame, pipeline: Pipeline, bad: str, carry_raw: bool) -> DataFrame:
    """Each message is decoded once, into a struct; its columns and its faults are taken from there."""
    decoding = pipeline.topic.decoding
    headers = "headers" if "headers" in messages.columns else "CAST(NULL AS array<struct<key:string,value:binary>>)"
    raw = {"_sluice_key": "key", "_sluice_value": "value", "_sluice_headers": headers}
    raw |= {ONLY: ONLY} if ONLY in messages.columns else {}
    event_time = dict(decoding.columns)[pipeline.topic.event_time] if pipeline.topic.event_time else "_kafka_timestamp"
    columns = {
        **{column.name: column.name for column in pipeline.kafka_columns},
        **({name: name for name in ("_sluice_key", "_sluice_value", "_sluice_headers")} if carry_raw else {}),
        **{identifier(name): sql for name, sql in decoding.columns},
        **({EVENT_TIME: event_time} if pipeline.reads_event_time else {}),
        "_sluice_bad": _bad_row(decoding.faults, 0, bad),
    }
    if decoding.unknown:
        columns["_sluice_unknown"] = decoding.unknown
    columns |= _own_columns(pipeline) | ({ONLY: ONLY} if ONLY in raw else {})
    rows = messages.selectExpr(
        *(f"{sql} AS {name}" for name, sql in raw.items()),
        *([f"topic AS {KAFKA_TOPIC.name}"] if KAFKA_TOPIC in pipeline.kafka_columns else []),
        "partition AS _kafka_partition", "offset AS _kafka_offset", "timestamp AS _kafka_timestamp",
    )  # fmt: skip
    rows = rows.selectExpr("*", *(f"{sql} AS {name}" for name, sql in decoding.structs))
    return rows.selectExpr(*(f"{_plain(sql)} AS {name}" for name, sql in columns.items()))


def of_table(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The rows of a table; a bad row has its JSON text in the place of a message's value."""
    assert pipeline.source is not None
    names = [identifier(column.name) for column in (*pipeline.source.columns, *pipeline.source.kafka)]
    own = {column.name: column.name for column in FROM_COLUMNS if column in pipeline.kafka_columns}
    if any(step.faults for step in pipeline.steps):
        own["_sluice_key"] = "CAST(NULL AS BINARY)"
        own["_sluice_value"] = f"CAST(to_json(struct({', '.join(names)})) AS BINARY)"
        own["_sluice_headers"] = "CAST(NULL AS array<struct<key:string,value:binary>>)"
    own["_sluice_bad"] = f"CAST(NULL AS struct<{_TRAVELLING}>)"
    own |= _own_columns(pipeline)
    if pipeline.source.old != "none":
        own |= {OLD: OLD, "_sluice_before": "_sluice_before", "_sluice_first": "NOT _sluice_before", "_sluice_keep": "true"}
    return rows.selectExpr(*names, *(f"{sql} AS {name}" for name, sql in own.items()))


def _own_columns(pipeline: Pipeline) -> dict[str, str]:
    """Sluice's own columns, which each row carries because of a step."""
    columns = {}
    keep = None if pipeline.source else pipeline.topic.decoding.keep
    if keep or pipeline.explodes or any(step.keep for step in pipeline.steps):
        columns["_sluice_keep"] = keep or "true"
    if pipeline.explodes:
        columns["_sluice_first"], columns["_sluice_item"] = "true", _WHOLE
    if pipeline.table.keyed and pipeline.table.keyed.ends:
        columns["_sluice_tombstone"] = pipeline.table.keyed.ends
    if pipeline.table.keyed and pipeline.table.keyed.truncates:
        columns[TRUNCATES] = pipeline.table.keyed.truncates
    return columns


def _plain(sql: str) -> str:
    return substituted(sql, {"_sluice_text": "CAST(_sluice_value AS STRING)"})


def apply(rows: DataFrame, step: Step, pipeline: Pipeline, bad: str) -> DataFrame:
    """The columns after a step, with the step's faults of rows that are kept and good so far."""
    if step.each:
        rows = _exploded(rows, step)
    assign = {identifier(name): sql for name, sql in step.assign}
    before = rows.columns
    if step.attempts:
        rows = rows.selectExpr("*", *(f"{sql} AS {name}" for name, sql in step.attempts))
    # Sluice's own columns stay through every step; those of the message are the step's.
    columns = {name: name for name in before if name.startswith(("_sluice_", "_kafka_")) or name in _OWN}
    if any(column.name == EVENT_TIME for column in step.columns):  # of a table that keeps it
        columns.pop(EVENT_TIME, None)
    columns |= {identifier(column.name): assign.get(identifier(column.name), identifier(column.name)) for column in step.columns}
    if step.faults:
        item = "_sluice_item" if "_sluice_item" in rows.columns else _WHOLE
        bad_row = _bad_row(step.faults, pipeline.faults.index(step.faults[0]), bad, item)
        columns["_sluice_bad"] = f"CASE WHEN {_is_checked(rows.columns, step.of_tombstones)} THEN {bad_row} ELSE _sluice_bad END"
        if OLD in rows.columns:  # a row that was bad before it changed was never here
            columns["_sluice_keep"] = f"_sluice_keep AND NOT ({OLD} AND coalesce({_any(step.faults)}, false))"
    if step.keep:
        columns["_sluice_keep"] = f"_sluice_keep AND {_or_tombstone(rows.columns, f'coalesce({step.keep}, false)')}"
    return rows.selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()))


def _exploded(rows: DataFrame, step: Step) -> DataFrame:
    """A row for each item. A message without items stays one row, which is not kept, so that it is counted."""
    assert step.each is not None
    is_good = _is_good(rows.columns)
    items = f"posexplode_outer(CASE WHEN {is_good} THEN {step.each.list} END) AS (_sluice_at, _sluice_each)"
    rows = rows.selectExpr("*", items)
    own_columns = {
        "_sluice_keep": f"_sluice_keep AND {_or_tombstone(rows.columns, '_sluice_bad IS NOT NULL OR _sluice_at IS NOT NULL')}",
        "_sluice_first": "_sluice_first AND coalesce(_sluice_at, 0) = 0",
        "_sluice_item": "concat_ws('.', _sluice_item, CAST(_sluice_at + 1 AS STRING))",
        identifier(step.each.into): "_sluice_each",
    }
    kept = {
        identifier(name): identifier(name)
        for name in rows.columns
        if name not in (*own_columns, step.each.into, "_sluice_at", "_sluice_each")
    }
    return rows.selectExpr(*(f"{sql} AS {name}" for name, sql in {**kept, **own_columns}.items()))


def _bad_row(faults: tuple[Fault, ...], index: int, bad: str, item: str = _WHOLE) -> str:
    """SQL of the bad row, if the row has a fault: with the number of its first fault, counted over the whole pipeline."""
    first_fault = "CASE " + " ".join(f"WHEN {fault.when} THEN {index + at}" for at, fault in enumerate(faults)) + " END"
    causes = " ".join(f"WHEN {fault.when} THEN {fault.cause or 'NULL'}" for fault in faults)
    cause = f"CASE {causes} END" if any(fault.cause for fault in faults) else _WHOLE
    bad_row = substituted(bad, {"_sluice_fault": first_fault, "_sluice_cause": cause, "_sluice_of": item})
    return f"CASE WHEN {_any(faults)} THEN {bad_row} END"


def _any(faults: tuple[Fault, ...]) -> str:
    """SQL of whether the row has one of the faults."""
    return " OR ".join(f"({fault.when})" for fault in faults)


def _travelling(pipeline: Pipeline, size: int, carry: bool) -> str:
    """A bad row on its way: with its bytes, unless all bad rows of a batch of that size could be too much for memory."""
    # A power of two: another number would be other code, which Java would compile again for each batch.
    most = min(_MOST_PER_ROW, max(256, CARRIED >> size.bit_length()))
    # All headers as one text: a sum over them is code that Spark does not compile with the rest.
    sizes = (f"coalesce(octet_length({sql}), 0)" for sql in ("_sluice_value", "_sluice_key", "CAST(_sluice_headers AS STRING)"))
    bytes_ = " + ".join(sizes)
    large = f"{bytes_} > {most}" if carry else "false"
    topic = KAFKA_TOPIC.name if KAFKA_TOPIC in pipeline.kafka_columns else literal(pipeline.sources[0])
    there = [column.name for column in pipeline.kafka_columns]
    kafka = ", ".join(
        f"'{column.name.removeprefix('_kafka_')}', {column.name if column.name in there else f'CAST(NULL AS {column.type.sql})'}"
        for column in KAFKA_COLUMNS
    )
    parts = ", ".join(f"'{name}', IF({large}, NULL, _sluice_{name})" for name in ("key", "value", "headers"))
    fault = "'fault', _sluice_fault, 'cause', _sluice_cause, 'item', _sluice_of"
    return f"named_struct({fault}, 'topic', {topic}, {kafka}, {parts}, 'dropped', {large})"
