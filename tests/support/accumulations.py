"""Pipelines that accumulate, and orders for them."""

from __future__ import annotations

from hypothesis import strategies as st

Order = tuple[int, str | None, int | None]  # an id, a country and an amount; without an amount it is deleted
orders = st.tuples(st.integers(1, 5), st.sampled_from(["DE", "FR", None]), st.none() | st.sampled_from([1, 2, 13, 40]))
KILLED = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, price: double}}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - derive: {{parity: id % 3}}
  - aggregate: {{by: [parity], measures: {{total: sum(id), trades: count(*), highest: last(id)}}}}
into: {{table: {namespace}.trades, write: accumulate}}
"""
