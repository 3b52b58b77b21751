"""Bad rows: how they travel with the good ones, and the rows that their table gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.core.rows.own_columns import WHOLE, with_text
from framework.plan import KAFKA_COLUMNS, KAFKA_TOPIC, OPEN, Fault, Pipeline
from framework.sql import masks
from framework.sql.quote import literal, substituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CARRIED = 64 << 20  # bytes of bad rows that a batch's only pass may carry
_MOST_PER_ROW = 64 << 10
# The SQL type of a bad row that travels with the good ones.
TYPE = (
    "fault int, cause string, item string, topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>, dropped boolean"
)


def travelling(pipeline: Pipeline, size: int, carry: bool) -> str:
    """SQL of a bad row that travels with the good ones: with its bytes, unless all bad rows of a batch of that size could be too much
    for memory."""
    # A power of two: another number would be other code, which Java would compile again for each batch.
    limit = min(_MOST_PER_ROW, max(256, CARRIED >> size.bit_length()))
    # All headers as one text: a sum over them is code that Spark does not compile with the rest.
    sizes = (f"coalesce(octet_length({sql}), 0)" for sql in ("_sluice_value", "_sluice_key", "CAST(_sluice_headers AS STRING)"))
    size_sql = " + ".join(sizes)
    large = f"{size_sql} > {limit}" if carry else "false"
    topic = KAFKA_TOPIC.name if KAFKA_TOPIC in pipeline.kafka_columns else literal(pipeline.sources[0])
    column_names = [column.name for column in pipeline.kafka_columns]
    kafka = ", ".join(
        f"'{column.name.removeprefix('_kafka_')}', {column.name if column.name in column_names else f'CAST(NULL AS {column.type.sql})'}"
        for column in KAFKA_COLUMNS
    )
    parts = ", ".join(f"'{name}', IF({large}, NULL, _sluice_{name})" for name in ("key", "value", "headers"))
    fault = "'fault', _sluice_fault, 'cause', _sluice_cause, 'item', _sluice_of"
    return f"named_struct({fault}, 'topic', {topic}, {kafka}, {parts}, 'dropped', {large})"


def bad_row(faults: tuple[Fault, ...], index: int, bad: str, item: str = WHOLE) -> str:
    """SQL of the bad row, if the row has a fault: with the number of its first fault, counted over the whole pipeline."""
    first_fault = "CASE " + " ".join(f"WHEN {fault.when} THEN {index + number}" for number, fault in enumerate(faults)) + " END"
    causes = " ".join(f"WHEN {fault.when} THEN {fault.cause or 'NULL'}" for fault in faults)
    cause = f"CASE {causes} END" if any(fault.cause for fault in faults) else WHOLE
    bad_row = substituted(bad, {"_sluice_fault": first_fault, "_sluice_cause": cause, "_sluice_of": item})
    return f"CASE WHEN {has_one(faults)} THEN {bad_row} END"


def has_one(faults: tuple[Fault, ...]) -> str:
    """SQL of whether the row has one of the faults."""
    return " OR ".join(f"({fault.when})" for fault in faults)


def table_rows(pipeline: Pipeline, batch: int, bad: DataFrame) -> DataFrame:
    """Rows of the bad rows' table, from travelling bad rows: their codes and messages are added here, off the fast path."""
    faults = pipeline.faults
    decoding = pipeline.decoding
    lookup = {part: ", ".join(literal(str(getattr(fault, part))) for fault in faults) for part in ("stage", "code", "message")}
    rows = bad.selectExpr("*", *(f"element_at(array({values}), fault + 1) AS {part}" for part, values in lookup.items()))
    rows = rows.selectExpr("*", *(f"{_of_bad_row(sql)} AS {name}" for name, sql in decoding.structs))
    reasons = " ".join(f"WHEN {number} THEN {_of_bad_row(fault.why)}" for number, fault in enumerate(faults) if fault.why)
    message = "concat_ws(': ', message, cause)"
    message = f"coalesce(CASE fault {reasons} END, {message})" if reasons else message
    key, value, headers = sealed(pipeline)
    return rows.selectExpr(
        f"{batch} AS batch", "stage", "code", f"{message} AS message", "item", "topic", "partition", "offset", "timestamp",
        f"{headers} AS headers", f"try_cast({_of_bad_row(decoding.schema_id)} AS INT) AS schema_id", f"{key} AS key", f"{value} AS value",
        f"'{OPEN}' AS state", "CAST(NULL AS INT) AS replayed_in",
    )  # fmt: skip


def sealed(pipeline: Pipeline, action: str = "seal") -> tuple[str, str, str]:
    """SQL of a bad row's key, value and headers, encrypted where the pipeline masks columns. The action `open` decrypts them, which fails
    where the pipeline once masked columns and no longer has the keys."""
    keys = pipeline.mask_keys
    if not keys and action == "seal":
        return "key", "value", "headers"
    return masks.call(action, keys, "key"), masks.call(action, keys, "value"), masks.sealed_headers(keys, action, "headers")


def _of_bad_row(sql: str) -> str:
    return substituted(with_text(sql), {"_sluice_value": "value", "_sluice_key": "key"})
