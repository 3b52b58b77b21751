"""Specs of pipelines beside `trades` of a project, for streams of several pipelines."""

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
