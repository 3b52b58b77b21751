"""Rows with keys as a list of messages says that they must be, and as engines read them from a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from framework.core.iceberg import table_state
from framework.core.query.one_select import ask
from framework.plan import Message, Pipeline

SPEC = """
topic: orders
value: json
key: {{format: json, columns: {{id: bigint, region: string}}}}
{event_time}
columns: {{name: string, at: {{type: timestamp, format: epoch_millis}}}}
---
pipeline: orders
from: {{topic: orders}}
into:
  table: {namespace}.orders
  write: {write}
  {keys}
  deletes: {deletes}
  format_version: {version}
  kafka_columns: false
  partition_by: {partition_by}
maintain: {{keep_at_least: 1}}
"""
HOSTILE = (
    "${env:HOME}/x",
    "${spark.app.name}",
    "$${env:HOME}",
    "a' OR '1'='1",
    "\\",
    "\\'",
    '"',
    "a`b",
    "a\0b",
    "\u2028",
    "é",
    "e\u0301",
)
Key = tuple[str, int]
Row = tuple[Any, ...]


def happened(messages: Sequence[Message], deletes: str, by_event_time: bool) -> Mapping[Key, list[tuple[Any, str | None]]]:
    """The states of each key in their order: the name, or None where it was deleted. Among a key's messages with the same event
    time, the later offset of a partition is newer, and Kafka's time decides between partitions."""
    histories: dict[Key, list[tuple[Any, str | None]]] = {}
    risen: dict[Any, datetime] = {}
    for message in messages:
        if message.value == b"{":
            continue
        key = json.loads(message.key or b"")
        value: Any = json.loads(message.value) if message.value else None
        time = message.timestamp if value is None else datetime.fromtimestamp(value["at"] / 1000, timezone.utc)
        if value is None and deletes != "tombstones":
            continue
        is_deleted = value is None or (deletes not in ("tombstones", "ignore") and value["name"] == "del")
        event_time = (time,) if by_event_time else ()
        row_key, log = (key["region"], key["id"]), (key["region"], key["id"], *event_time, message.partition)
        risen[log] = max(message.timestamp, risen.get(log, message.timestamp))
        order = (*event_time, risen[log], message.partition, message.offset)
        histories.setdefault(row_key, []).append((order, None if is_deleted else value["name"]))
    return {key: sorted(history, key=lambda state: state[0]) for key, history in histories.items()}


def upserted(happened: Mapping[Key, list[tuple[Any, str | None]]]) -> list[Row]:
    return [(*key, history[-1][1]) for key, history in happened.items() if history[-1][1] is not None]


def versions(happened: Mapping[Key, list[tuple[Any, str | None]]]) -> list[Row]:
    version_rows = []
    for key, history in happened.items():
        ends = [order[0] for order, _ in history[1:]]
        for index, (order, name) in enumerate(history):
            if name is not None:
                version_rows.append((*key, name, order[0], ends[index] if index < len(ends) else None, index == len(ends)))
    return version_rows


def appended(happened: Mapping[Key, list[tuple[Any, str | None]]]) -> list[Row]:
    return [(*key, name) for key, history in happened.items() for _, name in history if name is not None]


NAMES = ("region", "id", "name")
VERSIONS = (*NAMES, "valid_from", "valid_to", "is_current")
COLUMNS = {"append": NAMES, "upsert": NAMES, "history": VERSIONS, "accumulate": ("symbol", "window_start", "trades")}
MODELS = {"append": appended, "upsert": upserted, "history": versions}


def read_once(pipeline: Pipeline, spark: Any) -> Counter[Row]:
    """Reads the rows with PyIceberg."""
    names = COLUMNS[pipeline.table.write.name]
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    arrow = table.scan(selected_fields=names).to_arrow()
    return Counter(zip(*(arrow[name].to_pylist() for name in names), strict=True))


def rows(pipeline: Pipeline, spark: Any) -> Counter[Row]:
    """Reads the rows with three engines, which must agree."""
    names, table_rows = COLUMNS[pipeline.table.write.name], read_once(pipeline, spark)
    by_spark = spark.table(f"lake.{pipeline.table.identifier}").select(*names).toArrow()
    assert table_rows == Counter(zip(*(by_spark[name].to_pylist() for name in names), strict=True))
    texts = [f"CAST({name} AS VARCHAR)" for name in names]
    answer = ask([pipeline.table.catalog], f"SELECT {', '.join(texts)} FROM {pipeline.table.identifier}")
    assert Counter(map(tuple, answer.rows())) == Counter(tuple(map(as_duckdb, row)) for row in table_rows.elements())
    return table_rows


def as_duckdb(value: Any) -> str | None:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}+00"
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
