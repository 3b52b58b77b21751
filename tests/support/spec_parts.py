"""Parts of specs that many tests have in common."""

LAKE = """\
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
"""
ORDERS = """
cluster: main
bootstrap: 127.0.0.1:1
---
{catalog}
---
topic: orders
value: json
columns: {{id: bigint}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
"""
"""A pipeline of a Kafka that is away, with its `catalog` to fill in."""
