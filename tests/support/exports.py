"""Exports of a table of orders."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog

from framework.host.cli import main

SPECS = """
cluster: main
bootstrap: 127.0.0.1:1
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
---
topic: orders
value: json
columns: {order_id: string, channel: string, amount: "decimal(10,2)", day: date, local: timestamp_ntz, at: timestamp}
---
pipeline: orders
from: {topic: orders}
into: {table: shop.orders, kafka_columns: false, format_version: 2}
---
export: weekly
from: {table: shop.orders}
window: {last: week, by: at, timezone: Europe/Berlin}
query: QUERY
file: {format: csv, to: "exports/weekly_{window_start:%Y-%m-%d}.csv"}
---
export: whole
from: {table: shop.orders}
query: select * from input order by order_id
file: {format: parquet, to: exports/orders.parquet}
---
export: lines
from: {table: shop.orders}
window: {last: day, by: day}
query: select order_id, amount from input order by order_id
file: {format: jsonl, to: "exports/{window_start:%Y}/{window_start:%m-%d}.jsonl"}
---
export: local
from: {table: shop.orders}
window: {last: hour, by: local, timezone: Europe/Berlin}
query: select order_id from input order by order_id
file: {format: csv, to: "exports/{window_start:%Y-%m-%dT%H%z}.csv", for_spreadsheets: false}
"""
SCHEMA = pa.schema([
    ("order_id", pa.string()), ("channel", pa.string()), ("amount", pa.decimal128(10, 2)), ("day", pa.date32()),
    ("local", pa.timestamp("us")), ("at", pa.timestamp("us", "UTC")),
])  # fmt: skip


def specs(query: str) -> None:
    Path("specs").mkdir(exist_ok=True)
    Path("specs/all.yaml").write_text(SPECS.replace("QUERY", json.dumps(query)), encoding="utf-8")


def put(*rows: tuple[str, str | None, str, datetime]) -> int:
    """Adds orders (id, channel, amount and time), and returns the table's snapshot."""
    lake = SqlCatalog("lake", uri="sqlite:///lake.db", warehouse=Path("warehouse").absolute().as_uri())
    lake.create_namespace_if_not_exists("shop")
    table = lake.create_table_if_not_exists("shop.orders", SCHEMA)
    table.append(pa.Table.from_pylist(
        [{"order_id": id_, "channel": channel, "amount": Decimal(amount), "day": time.date(), "local": time.replace(tzinfo=None),
          "at": time}
         for id_, channel, amount, time in rows], SCHEMA,
    ))  # fmt: skip
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def export(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["export", *arguments])
