"""Measures upserts into large tables: beside a plain MERGE of the same rows into the same table, how many bytes are written, and how the
time grows with the table. In turns, in one warm session.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import load
from bench.quick import place, report
from framework.core.context.context import Context
from framework.core.run.run import batches
from framework.host.plans import make
from framework.plan import Pipeline
from tests.support.warm_runs import used

MILLIONS = (1, 10, 30)
FILE = 250_000  # rows of a file: 40 files in ten million rows
CHANGES = 100_000
TURNS = 5  # of which the first two warm up
TENS = 3  # batches of ten keys in a turn: short ones differ the most

PIPELINE = """
---
topic: rows{size}
value: json
columns: {{k: bigint, v: string, n: int}}
---
pipeline: rows{size}
from: {{topic: rows{size}}}
into: {{table: bench.rows{size}, write: upsert, keys: [k]}}
"""
PLAIN = """
MERGE INTO {table} t USING changes s ON t.k = s.k
WHEN MATCHED THEN UPDATE SET v = s.v, n = s.n WHEN NOT MATCHED THEN INSERT (k, v, n) VALUES (s.k, s.v, s.n)
"""


BARS = {
    "upsert_100k_vs_merge": "≥ 5", "upsert_10_vs_merge": "≥ 8", "upsert_random_vs_merge": "≥ 1.5", "upsert_bytes_ratio": "≤ 3",
    "upsert_growth_per_tenfold": "≤ 1.5", "upsert_heap_100_vs_20": "≤ 1.05",
}  # fmt: skip


def main() -> None:
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        report(measured(bootstrap), BARS, time.monotonic() - began)


def measured(bootstrap: str) -> dict[str, float]:
    folder = load.specs(bootstrap, {})
    with (folder / "bench.yaml").open("a") as file:
        file.writelines(PIPELINE.format(size=size) for size in MILLIONS)
    context = Context(make(folder))
    numbers = itertools.count()
    for size in MILLIONS:
        _fill(context, bootstrap, size)
    seconds: dict[str, list[float]] = {}
    bytes_: list[float] = []
    for turn in range(TURNS):
        for name, size, keys in _work(turn):
            ours, written = _ours(context, bootstrap, size, keys, next(numbers))
            durations = {name: ours}
            if size == 10:
                durations[f"{name} merge"] = _plain(context, size, keys, next(numbers))
            if name == "clustered 10":
                bytes_.append(written / _appended(context, keys, turn))
            for label, duration in durations.items():
                print(f"turn {turn} {label}: {duration:.2f} s", flush=True)
                if turn >= 2:
                    seconds.setdefault(label, []).append(duration)
    heap = _heap(context, bootstrap, numbers)
    context.stop()
    median = {name: statistics.median(values) for name, values in seconds.items()}
    tenfold = math.log10(MILLIONS[-1] / MILLIONS[0])
    return {
        "upsert_100k_vs_merge": median["clustered 10 merge"] / median["clustered 10"],
        "upsert_10_vs_merge": median["ten 10 merge"] / median["ten 10"],
        "upsert_random_vs_merge": median["random 10 merge"] / median["random 10"],
        "upsert_bytes_ratio": statistics.median(bytes_),
        "upsert_growth_per_tenfold": (median["clustered 30"] / median["clustered 1"]) ** (1 / tenfold),
        "upsert_growth_per_tenfold_random": (median["random 30"] / median["random 1"]) ** (1 / tenfold),
        "upsert_heap_100_vs_20": heap,
        **{f"upsert_{name.replace(' ', '_')}_s": value for name, value in median.items()},
    }


def _work(turn: int) -> Iterator[tuple[str, int, Sequence[int]]]:
    chance = random.Random(turn)
    for size in MILLIONS:
        rows = size * 1_000_000
        start = chance.randrange(rows - CHANGES)
        yield f"clustered {size}", size, range(start, start + CHANGES)
        yield f"random {size}", size, chance.sample(range(rows), CHANGES)
    for _ in range(TENS):
        yield "ten 10", 10, [chance.randrange(1_000_000) + part * 1_000_000 for part in range(10)]


def _heap(context: Context, bootstrap: str, numbers: Iterator[int]) -> float:
    """The heap of a process after a hundred batches of ten keys, relative to that after twenty."""
    used_by = {}
    for count in range(1, 101):
        _ours(context, bootstrap, 1, range(count, count + 10), next(numbers))
        if count in (20, 100):
            used_by[count] = used(context.spark._jvm)
    return used_by[100] / used_by[20]


def _fill(context: Context, bootstrap: str, size: int) -> None:
    """The table as a load that went well would have left it: its rows in files that do not overlap."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(f"rows{size}", 2, 1)])[f"rows{size}"].result()
    _ours(context, bootstrap, size, [-1], 0)
    rows = size * 1_000_000
    moment = "timestamp'2026-01-01'"
    frame = context.spark.range(0, rows, 1, rows // FILE).selectExpr(
        "id AS k", "concat('v', id, '-', md5(CAST(id AS STRING))) AS v", "1 AS n",
        "0 AS _kafka_partition", "id AS _kafka_offset", f"{moment} AS _kafka_timestamp",
    )  # fmt: skip
    frame.writeTo(_table(size)).append()


def _ours(context: Context, bootstrap: str, size: int, keys: Sequence[int], number: int) -> tuple[float, int]:
    """Seconds of the batch, from the look at Kafka to the end, and the bytes that it added."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    for key in keys:
        producer.produce(f"rows{size}", json.dumps({"k": key, "v": _text(key, number), "n": number}), partition=key % 2)
    assert producer.flush(60) == 0
    pipeline = _pipeline(context, size)
    began = time.perf_counter()
    (batch,) = batches(context, pipeline)
    duration = time.perf_counter() - began
    assert batch.rows == len(keys)
    table: Any = context.lake(pipeline).load(pipeline.table.identifier)
    return duration, int(table.snapshot(batch.snapshot).summary().get("added-files-size"))


def _plain(context: Context, size: int, keys: Sequence[int], number: int) -> float:
    """The seconds of the MERGE that everybody writes, for the same rows, which are in memory already."""
    rows = _frame(context, keys, number).cache()
    rows.count()
    rows.createOrReplaceTempView("changes")
    began = time.perf_counter()
    context.spark.sql(PLAIN.format(table=_table(size)))
    duration = time.perf_counter() - began
    rows.unpersist()
    return duration


def _appended(context: Context, keys: Sequence[int], turn: int) -> int:
    """The bytes of the same rows in a table to which they are only appended."""
    name = f"lake.bench.appended{turn}"
    columns = "0 AS _kafka_partition", "k AS _kafka_offset", "timestamp'2026-01-01' AS _kafka_timestamp"
    frame = _frame(context, keys, turn).selectExpr("*", *columns)
    layout = {"write.parquet.compression-codec": "zstd", "write.parquet.compression-level": "1"}
    writer = frame.writeTo(name).using("iceberg")
    for key, value in layout.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    return int(context.spark.sql(f"SELECT sum(file_size_in_bytes) FROM {name}.files").collect()[0][0])


def _frame(context: Context, keys: Sequence[int], number: int) -> Any:
    import pyarrow

    values = [_text(key, number) for key in keys]
    return context.spark.createDataFrame(
        pyarrow.table({"k": list(keys), "v": values, "n": pyarrow.array([number] * len(keys), "int32")})
    )


def _text(key: int, number: int) -> str:
    return f"{number}-{key * 2654435761 % 2**32:08x}-{key}"


def _table(size: int) -> str:
    return f"lake.bench.rows{size}"


def _pipeline(context: Context, size: int) -> Pipeline:
    pipeline = context.plan.pipeline(f"rows{size}")
    assert pipeline
    return pipeline


if __name__ == "__main__":
    main()
