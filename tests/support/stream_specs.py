"""Specs for streams of several pipelines: beside `trades` of a project, and of plans that nobody runs."""

from __future__ import annotations

NEWEST = """run: {{every: 1s}}
---
pipeline: newest
from: {{topic: trades}}
run: {{every: 1s}}
into: {{table: {namespace}.newest, write: upsert, keys: [id]}}
"""
COPY = """---
pipeline: copy
from: {{table: {namespace}.trades}}
run: {{every: 1s}}
into: {{table: {namespace}.copy}}
"""
MORE = NEWEST + COPY
"""With `namespace` to fill in."""

SOURCES = """
cluster: main
bootstrap: 127.0.0.1:9092
---
topic: trades
value: json
columns: {id: bigint}
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
"""
FROM_TOPIC = """---
pipeline: %s
from: {topic: trades}
run: {%s}
into: {table: streams.%s}
"""
"""With its name, its `run` and its table to fill in."""
