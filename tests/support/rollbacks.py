"""Tables that are rolled back and replayed."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.operations.undo import accept, replay, rollback
from tests.support.project import Project
from tests.support.runs import published

QUOTES = """
topic: trades
kafka_name: {topic}
key: {{format: string, as: symbol}}
value: json
columns: {{price: bigint}}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - derive: {{shown: "{more}"}}
into: {{table: {namespace}.trades, write: upsert, keys: [symbol], deletes: tombstones}}
"""
ORDERS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, items: "array<struct<sku: string, amount: string>>"}}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - explode: {{column: items, into: item}}
  - derive: {{amount: "{more}"}}
into: {{table: {namespace}.trades}}
"""
PLAIN = ORDERS.replace("  - explode: {{column: items, into: item}}\n", "")


def snapshots(project: Project) -> list[int]:
    """Returns the ids of main's snapshots, the oldest first."""
    state = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert state is not None
    return [entry.snapshot_id for entry in state.history()]


def rolled_back(project: Project, target: datetime | int, context: Context | None = None) -> rollback.Rollback:
    context = context or project.context()
    meaning = rollback.judged(context, context.plan.pipelines[0], target)
    accept.move(context, context.plan.pipelines[0], meaning.moves)
    return meaning


def replayed(project: Project, where: str = "", context: Context | None = None) -> list[Any]:
    context = context or project.context()
    pipeline = context.plan.pipelines[0]
    return published(replay.replay(context, pipeline, replay.condition(where), lambda: False))


def send(project: Project, values: dict[str, int | None], broken: bool = False) -> None:
    def value(price: int | None) -> bytes | None:
        return None if price is None else b"{" if broken else json.dumps({"price": price}).encode()

    project.produce({"key": symbol, "value": value(price), "partition": 0} for symbol, price in values.items())
