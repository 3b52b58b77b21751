"""Measures whole selects over tables: groups of ten million rows, beside the same SQL by hand in the same warm session; and again after
one per cent of the rows came, by groups and as a whole, in turns."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

from bench import load
from framework.core.context.context import Context
from framework.core.publish.batch import next_batch
from framework.core.publish.tables import open_table
from framework.host.plans import make
from framework.plan import Pipeline

ROWS, NEW_ROWS = 10_000_000, 100_000
DAYS, SYMBOLS, USERS = 100, 1_000, 100_000
TURNS = 6  # of which the first warms up
BARS = {"replace_vs_spark": "≥ 0.9", "incremental_vs_whole": "≤ 0.3"}

SELECT = "select {by}, sum(price * quantity) as total, count(*) as trades, max(price) as high from {table} group by {by}"
SPECS = f"""
---
topic: executions
value: json
columns: {{day: date, symbol: string, user: string, quantity: int, price: double}}
---
pipeline: executions
from: {{topic: executions}}
into: {{table: bench.executions, partition_by: [day], kafka_columns: false}}
---
pipeline: by_day
from: {{tables: [bench.executions]}}
steps: [{{sql: "{SELECT.format(by="day, symbol", table="bench.executions")}"}}]
into: {{table: bench.by_day, write: replace, partition_by: [day]}}
---
pipeline: by_user
from: {{tables: [bench.executions]}}
steps: [{{sql: "{SELECT.format(by="user", table="bench.executions")}"}}]
into: {{table: bench.by_user, write: replace}}
"""
COLUMNS = (
    "date_add(date'2026-01-01', CAST({day} AS INT)) AS day", f"concat('S', pmod(hash(id), {SYMBOLS})) AS symbol",
    "concat('U', {user}) AS user", "CAST(id % 9 + 1 AS INT) AS quantity", "pmod(hash(id, 1), 100000) / 100D AS price",
)  # fmt: skip
ALL = {"day": f"id div {ROWS // DAYS}", "user": f"pmod(hash(id, 2), {USERS})"}
NEW = {
    "day": "{turn}",
    "user": f"pmod(hash(id, 3), {USERS // 100}) + {{turn}} * {USERS // 100}",
}  # of one day and of a hundredth of users


def measured(bootstrap: str) -> dict[str, float]:
    folder = load.specs(bootstrap, {})
    with (folder / "bench.yaml").open("a") as file:
        file.write(SPECS)
    load.produce(bootstrap, "executions", ())
    context = Context(make(folder))
    executions = context.plan.pipeline("executions")
    assert executions is not None
    open_table(context, context.lake(executions), executions)
    rows = context.spark.range(0, ROWS, 1, 10)
    rows.selectExpr(*(column.format(**ALL) for column in COLUMNS)).sortWithinPartitions("day").writeTo(
        "lake.bench.executions"
    ).append()
    seconds: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for name in ("by_day", "by_user"):
            pipeline = context.plan.pipeline(name)
            assert pipeline is not None
            durations = {f"{name} whole": _batch(context, replace(pipeline, spec=f"{turn}"))}
            if name == "by_day":
                durations["by hand"] = _by_hand(context, turn)
            _batch(context, pipeline)
            new = context.spark.range(ROWS + turn * NEW_ROWS, ROWS + (turn + 1) * NEW_ROWS)
            parameters = {key: sql.format(turn=turn) for key, sql in NEW.items()}
            new.coalesce(1).selectExpr(*(column.format(**parameters) for column in COLUMNS)).writeTo(
                "lake.bench.executions"
            ).append()
            durations[f"{name} groups"] = _batch(context, pipeline)
            for label, duration in durations.items():
                print(f"turn {turn} {label}: {duration:.2f} s", flush=True)
                seconds.setdefault(label, []).append(duration)
    context.stop()
    median = {label: statistics.median(values[1:]) for label, values in seconds.items()}
    return {
        "replace_vs_spark": median["by hand"] / median["by_day whole"],
        "incremental_vs_whole": median["by_day groups"] / median["by_day whole"],
        "incremental_users_vs_whole": median["by_user groups"] / median["by_user whole"],
        "replace_s": median["by_day whole"],
    }


def _batch(context: Context, pipeline: Pipeline) -> float:
    began = time.perf_counter()
    assert next_batch(context, pipeline) is not None
    return time.perf_counter() - began


def _by_hand(context: Context, turn: int) -> float:
    select = SELECT.format(by="day, symbol", table="lake.bench.executions")
    if turn == 0:
        context.spark.sql(
            f"CREATE TABLE lake.bench.hand USING iceberg PARTITIONED BY (day) TBLPROPERTIES ('format-version' = '3') AS {select}"
        )
    began = time.perf_counter()
    context.spark.sql(f"INSERT OVERWRITE lake.bench.hand {select}")
    return time.perf_counter() - began


def main() -> None:
    from bench.quick import place, report
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        report(measured(bootstrap), BARS, time.monotonic() - began)


if __name__ == "__main__":
    main()
