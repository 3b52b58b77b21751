"""Measures totals: a hundred thousand rows added to a million groups, beside an upsert of the same rows into a million keys, in turns, in
one warm session."""

from __future__ import annotations

import json
import random
import statistics
import time

from bench import load
from framework.core.context.context import Context
from framework.core.publish.batch import next_batch
from framework.core.publish.tables import open_table
from framework.host.plans import make

GROUPS, ROWS = 1_000_000, 100_000
FILE = 250_000  # rows of a file
TURNS = 7  # of which the first two warm up
BARS = {"accumulate_vs_upsert": "≤ 2"}

SPECS = """
---
topic: parts
value: json
columns: {k: bigint, n: int, price: double}
---
pipeline: newest
from: {topic: parts}
into: {table: bench.newest, write: upsert, keys: [k]}
---
pipeline: totals
from: {topic: parts}
steps:
  - aggregate: {by: [k], measures: {total: sum(n * price), rows: count(*), mean: avg(price)}}
into: {table: bench.totals, write: accumulate}
"""
# What each table has before: rows in files that do not overlap.
FILLED = {
    "newest": (
        "id AS k", "1 AS n", "1.5D AS price", "0 AS _kafka_partition", "-id - 1 AS _kafka_offset",
        "timestamp_seconds(1767571200) AS _kafka_timestamp",
    ),
    "totals": (
        "id AS k", "1.5D AS total", "1L AS rows", "1.5D AS mean",
        "named_struct('mean', named_struct('sum', 1.5D, 'count', 1L)) AS _measures",
    ),
}  # fmt: skip


def measured(bootstrap: str) -> dict[str, float]:
    folder = load.specs(bootstrap, {})
    with (folder / "bench.yaml").open("a") as file:
        file.write(SPECS)
    load.produce(bootstrap, "parts", ())
    context = Context(make(folder))
    for name, columns in FILLED.items():
        pipeline = context.plan.pipeline(name)
        assert pipeline is not None
        open_table(context, context.lake(pipeline), pipeline)
        context.spark.range(0, GROUPS, 1, GROUPS // FILE).selectExpr(*columns).writeTo(f"lake.bench.{name}").append()
    seconds: dict[str, list[float]] = {name: [] for name in FILLED}
    for turn in range(TURNS):
        chance = random.Random(turn)
        values = [{"k": chance.randrange(GROUPS), "n": number % 7, "price": number / 8} for number in range(ROWS)]
        load.produce(bootstrap, "parts", (json.dumps(value).encode() for value in values))
        for name in FILLED:
            duration = _batch(context, name)
            print(f"turn {turn} {name}: {duration:.2f} s", flush=True)
            if turn >= 2:
                seconds[name].append(duration)
    context.stop()
    median = {name: statistics.median(durations) for name, durations in seconds.items()}
    return {"accumulate_vs_upsert": median["totals"] / median["newest"], "accumulate_s": median["totals"]}


def _batch(context: Context, name: str) -> float:
    pipeline = context.plan.pipeline(name)
    assert pipeline is not None
    began = time.perf_counter()
    batch = next_batch(context, pipeline)
    duration = time.perf_counter() - began
    assert batch is not None
    assert batch.read == ROWS
    return duration


def main() -> None:
    from bench.quick import place, report
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        report(measured(bootstrap), BARS, time.monotonic() - began)


if __name__ == "__main__":
    main()
