"""Measures an export beside the same file made by hand, by Spark and by DuckDB: each a process of its own, in turns.

`make bench-shaping` runs it. `python -m bench.exports SPECS` is the one by Spark.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import handwritten, load
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.iceberg.lake import TableStore
from framework.core.publish.tables import open_table
from framework.core.query import database
from framework.host.plans import make
from framework.plan import Pipeline

ROWS = 10_000_000
WEEKS = 10
WEEK = "2026-W10"
FROM, UNTIL = "2026-03-02 00:00:00+00", "2026-03-09 00:00:00+00"
TURNS = 5
BARS = {"export_vs_spark": "≥ 5", "export_vs_duckdb": "≤ 1.5", "export_memory_mib": "≤ 1024"}
SELECT = "channel, country, category, count(*) as orders, count(distinct customer) as customers, sum(amount) as amount"
SPECS = f"""
---
topic: sales
value: json
columns: {{order_id: string, channel: string, country: string, category: string, customer: string, amount: "decimal(12,2)", at: timestamp}}
event_time: at
---
pipeline: sales
from: {{topic: sales}}
into: {{table: bench.sales, kafka_columns: false, partition_by: [day(at)]}}
---
export: weekly
from: {{table: bench.sales}}
window: {{last: week, by: at}}
query: select {SELECT} from input group by all order by all
file: {{format: csv, to: "weekly_{{window_start:%Y-%m-%d}}.csv"}}
"""


def measured(bootstrap: str) -> dict[str, float]:
    load.produce(bootstrap, "sales", [b"{}"])  # so that the topic is there
    folder = load.specs(bootstrap, {})
    with (folder / "bench.yaml").open("a") as file:
        file.write(SPECS)
    _fill(folder)
    hand = [sys.executable, "-m", "bench.exports"]
    commands = {
        "ours": [str(Path(sys.executable).with_name("sluice")), "export", "weekly", "--window", WEEK, "--specs", str(folder)],
        "duckdb": [sys.executable, "-c", _by_duckdb(folder)],
        "spark": [*hand, str(folder)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    memory = 0.0
    for turn in range(TURNS + 1):
        for name, command in commands.items():
            duration, mib = _timed(command)
            memory = max(memory, mib if name == "ours" else 0.0)
            if turn:
                seconds[name].append(duration)
            print(f"turn {turn} export {name}: {duration:.2f} s, {mib:,.0f} MiB", flush=True)
    median = {name: statistics.median(durations) for name, durations in seconds.items()}
    return {
        "export_vs_spark": median["spark"] / median["ours"],
        "export_vs_duckdb": median["ours"] / median["duckdb"],
        "export_memory_mib": memory,
        "export_s": median["ours"],
    }


def _timed(command: list[str]) -> tuple[float, float]:
    """The seconds and the greatest memory of a process."""
    began = time.perf_counter()
    root = str(Path(__file__).resolve().parent.parent)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root})
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, process.stderr and process.stderr.read().decode()[-2000:]
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def _pipeline(folder: Path) -> tuple[Context, Pipeline]:
    context = Context(make(folder))
    pipeline = context.plan.pipeline("sales")
    assert pipeline is not None
    return context, pipeline


def _fill(folder: Path) -> None:
    """Ten million rows, a tenth of them in each week."""
    context, pipeline = _pipeline(folder)
    lake: TableStore = context.lake(pipeline)
    open_table(context, lake, pipeline)
    values = [
        "concat('o-', id) AS order_id", "element_at(array('web', 'mobile', 'store', 'marketplace'), int(id % 4 + 1)) AS channel",
        "element_at(array('DE', 'FR', 'IT', 'NL', 'PL'), int(id % 5 + 1)) AS country",
        "element_at(array('home', 'kitchen', 'sports'), int(id % 3 + 1)) AS category", "concat('c-', id * 7919 % 100003) AS customer",
        "CAST(id % 20000 / 100 AS DECIMAL(12,2)) AS amount",
        f"timestamp_seconds(1769990400 + CAST(id * {WEEKS} * 7 * 86400 / {ROWS} AS BIGINT)) AS at",
    ]  # fmt: skip
    context.spark.range(0, ROWS, numPartitions=WEEKS).selectExpr(*values).writeTo("lake.bench.sales").append()
    context.stop()


def by_spark(folder: Path) -> None:
    spark = handwritten.session(make(folder))
    condition = f"at >= TIMESTAMP '{FROM}' AND at < TIMESTAMP '{UNTIL}'"
    answer = spark.sql(f"SELECT {SELECT} FROM lake.bench.sales WHERE {condition} GROUP BY ALL ORDER BY 1, 2, 3")
    answer.coalesce(1).write.mode("overwrite").option("header", True).csv("by_spark")
    spark.stop()


def _by_duckdb(folder: Path) -> str:
    """A program that imports DuckDB alone."""
    table = metadata.read(make(folder).catalogs[0], "bench.sales")
    assert table is not None
    condition = f"\"at\" >= TIMESTAMPTZ '{FROM}' AND \"at\" < TIMESTAMPTZ '{UNTIL}'"
    select = f"SELECT {SELECT} FROM iceberg_scan('{table.files.path(table.file)}') WHERE {condition} GROUP BY ALL ORDER BY ALL"
    copy = f"COPY ({select}) TO 'by_duckdb.csv' (HEADER)"
    lines = [
        "import duckdb",
        "db = duckdb.connect(config={'allow_unsigned_extensions': 'true'})",
        *(f"db.execute({load_!r})" for load_ in (f"LOAD '{file}'" for file in database.extension_files())),
        "db.execute(\"SET TimeZone = 'UTC'\")",
        f"db.execute({copy!r})",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    by_spark(Path(sys.argv[1]))
