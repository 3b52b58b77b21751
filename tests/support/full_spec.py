"""A spec with many options that is right."""

from __future__ import annotations

GOOD = """\
cluster: main
bootstrap: ${var:KAFKA:-127.0.0.1:19092}
security: {protocol: SASL_SSL, mechanism: PLAIN, username: "${secret:kafka_key}", password: "${secret:kafka_secret}"}
---
catalog: lake
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
---
engine: spark
master: local[*]
conf: {spark.sql.shuffle.partitions: 4}
---
secrets: main
store: file
path: .sluice/secrets
---
variables: main
values: {LARGE_TRADE: 4000}
---
topic: stock_trades
doc: 1.10
kafka_name: sample_data_stock_trades
partitions: 6
key: {format: string, as: userid}
headers: {source: string}
value: json
columns:
  side: string
  price: {type: double, doc: USD, required: true}
  at: timestamp
event_time: at
start_from: 2026-01-05T10:00:00+02:00
generate:
  rate: 600/m
  columns:
    side: {one_of: [BUY, SELL]}
    price: {between: [1, 9.5]}
    at: {now: true}
---
pipeline: flagged
owner: team:markets
tags: {tier: gold}
from: {topic: stock_trades}
steps:
  - filter: price > 0
  - flag:
      into: anomaly
      rules:
        - {when: price < 0, label: LOW}
        - {when: "price > ${var:LARGE_TRADE}", label: HIGH}
  - derive: {twice: price * 2}
into:
  table: markets.flagged
  partition_by: [day(at), "bucket(16, userid)"]
  format_version: 2
batch: {rows: 5000}
bad_rows: stop
fresh_within: 15m
"""
