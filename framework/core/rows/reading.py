"""Messages, or rows of a table, become rows with the columns that steps see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.core.rows.bad_rows import TYPE, bad_row
from framework.core.rows.own_columns import ONLY, own_columns, with_text
from framework.plan import EVENT_TIME, FROM_COLUMNS, KAFKA_TOPIC, OLD, Pipeline
from framework.plan.totals import OPEN_SINCE
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_of(rows: DataFrame, pipeline: Pipeline, bad: str, carry_raw: bool) -> DataFrame:
    """The rows before the first step, made of messages, or of rows of the tables that are read."""
    return decode(rows, pipeline, bad, carry_raw) if pipeline.topics else of_tables(rows, pipeline)


def decode(messages: DataFrame, pipeline: Pipeline, bad: str, carry_raw: bool) -> DataFrame:
    """Decodes each message once, into a struct from which its columns and its faults are taken, if it does not come with that struct."""
    decoding = pipeline.decoding
    headers = "headers" if "headers" in messages.columns else "CAST(NULL AS array<struct<key:string,value:binary>>)"
    raw = {"_sluice_key": "key", "_sluice_value": "value", "_sluice_headers": headers}
    decoded_names = [name for name, _ in decoding.structs if name in messages.columns]
    raw |= {name: name for name in (ONLY, OPEN_SINCE, *decoded_names) if name in messages.columns}
    event_time = dict(decoding.columns)[pipeline.topic.event_time] if pipeline.topic.event_time else "_kafka_timestamp"
    columns = {
        **{column.name: column.name for column in pipeline.kafka_columns},
        **({name: name for name in ("_sluice_key", "_sluice_value", "_sluice_headers")} if carry_raw else {}),
        **{identifier(name): sql for name, sql in decoding.columns},
        **({EVENT_TIME: event_time} if pipeline.reads_event_time else {}),
        "_sluice_bad": bad_row(decoding.faults, 0, bad),
    }
    if decoding.unknown:
        columns["_sluice_unknown"] = decoding.unknown
    columns |= own_columns(pipeline) | ({ONLY: ONLY} if ONLY in raw else {})
    rows = messages.selectExpr(
        *(f"{sql} AS {name}" for name, sql in raw.items()),
        *([f"topic AS {KAFKA_TOPIC.name}"] if KAFKA_TOPIC in pipeline.kafka_columns else []),
        "partition AS _kafka_partition", "offset AS _kafka_offset", "timestamp AS _kafka_timestamp",
    )  # fmt: skip
    rows = rows.selectExpr("*", *(f"{sql} AS {name}" for name, sql in decoding.structs if name not in decoded_names))
    return rows.selectExpr(*(f"{with_text(sql)} AS {name}" for name, sql in columns.items()))


def of_tables(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The rows of tables; a bad row has its JSON text in the place of a message's value."""
    names = [identifier(column.name) for column in (*pipeline.read_columns, *pipeline.source.kafka)]
    own_sql = {column.name: column.name for column in FROM_COLUMNS if column in pipeline.kafka_columns}
    if any(step.faults for step in pipeline.steps):
        own_sql["_sluice_key"] = "CAST(NULL AS BINARY)"
        own_sql["_sluice_value"] = f"CAST(to_json(struct({', '.join(names)})) AS BINARY)"
        own_sql["_sluice_headers"] = "CAST(NULL AS array<struct<key:string,value:binary>>)"
    own_sql["_sluice_bad"] = f"CAST(NULL AS struct<{TYPE}>)"
    own_sql |= own_columns(pipeline)
    if pipeline.has_old_rows:
        own_sql |= {OLD: OLD, "_sluice_before": "_sluice_before", "_sluice_first": "NOT _sluice_before", "_sluice_keep": "true"}
    return rows.selectExpr(*names, *(f"{sql} AS {name}" for name, sql in own_sql.items()))
