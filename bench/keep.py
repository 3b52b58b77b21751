"""Measures what keeps tables small: batches of a table with thousands of commits beside its first ones, and compaction beside Iceberg's own
procedure. `make bench-keep` runs it, some twenty minutes on two cores.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from bench import load
from bench.quick import place, report
from framework.base.types import BIGINT, STRING
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.iceberg.lake import TableStore
from framework.core.maintain.maintain import maintain
from framework.core.run.events import BatchDone, Maintained
from framework.core.run.run import run
from framework.core.sources import changes
from framework.host.plans import make
from framework.plan import Column, Pipeline

COMMITS = 2000
WINDOW = 20
ROWS = 100  # of a commit
FILES = 400  # that are compacted
MILLION = 1_000_000
TURNS = 3
KEEP = "maintain: {compact_every: 1m, keep_at_least: 20, thin: {all_for: 10m, then_every: 1m}}"

WIDE = 10 * MILLION  # rows of the table whose changes are read
_MERGED = "'format-version' = '3', 'write.merge.mode' = 'merge-on-read', 'write.parquet.compression-codec' = 'zstd'"
_VALUES = ("name STRING", "city STRING", "amount DOUBLE", "quantity INT", "at TIMESTAMP", "note STRING")
_COLUMNS = ("id BIGINT", *_VALUES)

BARS = {"commit_2000_vs_20": "≤ 1.2", "compaction_vs_spark": "≥ 0.9", "feed_vs_scan": "≤ 0.2"}


def main() -> None:
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        folder = load.specs(bootstrap, {"commits": "commits", "ours": "files", "theirs": "files"})
        specs = (folder / "bench.yaml").read_text()
        (folder / "bench.yaml").write_text(
            specs.replace("into: {table: bench.commits}", f"into: {{table: bench.commits}}\n{KEEP}")
        )
        context = Context(make(folder))
        results = _feed(context)
        if sys.argv[1:] != ["feed"]:
            results |= _commits(context, bootstrap) | _compaction(context, bootstrap)
        context.stop()
    report(results, BARS, time.monotonic() - began)


def _pipeline(context: Context, name: str) -> Pipeline:
    return next(pipeline for pipeline in context.plan.pipelines if pipeline.name == name)


def _commits(context: Context, bootstrap: str) -> dict[str, float]:
    """Batches as `sluice run --every` makes them, with the maintenance that follows when it is due, which is not counted."""
    pipeline = _pipeline(context, "commits")
    load.send(bootstrap, "commits", ROWS)
    seconds: list[float] = []
    remarks: list[str] = []
    for number in range(COMMITS + WINDOW):
        load.send(bootstrap, "commits", ROWS)
        for event in run(context, pipeline):
            if isinstance(event, BatchDone):
                seconds.append(event.batch.seconds)
            elif isinstance(event, Maintained):
                remarks.extend(event.done.says)
        if number % 100 == 0:
            median = statistics.median(seconds[-WINDOW:])
            print(f"commit {number}: {median:.2f} s; maintenance so far: {len(remarks)} times, {remarks[-2:]}", flush=True)
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    files = int(metadata.summary(table.main)["total-data-files"])
    return {
        "commit_2000_vs_20": statistics.median(seconds[-WINDOW:]) / statistics.median(seconds[WINDOW : 2 * WINDOW]),
        "commit_20_s": statistics.median(seconds[WINDOW : 2 * WINDOW]),
        "files_after_2000": files,
        "snapshots_after_2000": len(table.snapshots),
        "metadata_bytes_after_2000": Path(urlparse(table.file).path).stat().st_size,
    }


def _compaction(context: Context, bootstrap: str) -> dict[str, float]:
    """The MiB per second at which `sluice maintain` and Iceberg's procedure compact the same small files, in turns."""
    load.send(bootstrap, "files", MILLION)
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(TURNS + 1):
        for name, values in rates.items():
            pipeline = _pipeline(context, name)
            _small_files(context, pipeline)
            size = _bytes(pipeline)
            began = time.perf_counter()
            if name == "ours":
                list(maintain(context, pipeline))
            else:
                context.spark.sql(f"call lake.system.rewrite_data_files(table => '{pipeline.table.identifier}')").collect()
            if turn:  # before that the JVM is not warm
                values.append(size / (1 << 20) / (time.perf_counter() - began))
            print(
                f"turn {turn} compaction: {name} {values[-1] if values else 0:.1f} MiB/s of {size / (1 << 20):.0f} MiB",
                flush=True,
            )
    ours, theirs = (statistics.median(rates[name]) for name in rates)
    return {"compaction_vs_spark": ours / theirs, "compaction_mib_per_s": ours}


def _feed(context: Context) -> dict[str, float]:
    """The time to read the changes of one in a hundred rows, scattered over all files, relative to a scan of all rows, in turns; then again
    with one in ten of these rows deleted."""
    spark = context.spark
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    spark.sql(f"CREATE TABLE lake.bench.wide ({', '.join(_COLUMNS)}) USING iceberg TBLPROPERTIES ({_MERGED})")
    for part in range(5):
        rows = spark.range(part * WIDE // 5, (part + 1) * WIDE // 5)
        rows.selectExpr(
            "id", "concat('name ', id % 100003) AS name", "concat('city ', id % 997) AS city", "rand(1) * 100 AS amount",
            "CAST(id % 50 AS INT) AS quantity", "timestamp_seconds(1700000000 + id) AS at", "sha2(CAST(id AS STRING), 256) AS note",
        ).writeTo("lake.bench.wide").append()  # fmt: skip
    pipeline = _pipeline(context, "commits")
    lake = context.lake(pipeline)
    columns = tuple(Column(name, BIGINT if name == "id" else STRING) for name in (column.split()[0] for column in _COLUMNS))
    results: dict[str, float] = {}
    for name, chosen, deletes in (("feed", "id % 100 = 7", "false"), ("feed_with_deletes", "id % 100 = 8", "s.id % 1000 < 100")):
        since = _main(lake, "bench.wide")
        spark.range(WIDE).where(chosen).selectExpr(
            "id", *(f"CAST(NULL AS {column.split()[1]}) AS {column.split()[0]}" for column in _VALUES)
        ).createOrReplaceTempView("wide_changes")
        spark.sql(
            f"MERGE INTO lake.bench.wide t USING wide_changes s ON t.id = s.id WHEN MATCHED AND {deletes} THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET *"
        )
        until = _main(lake, "bench.wide")
        scans, feeds = [], []
        for turn in range(5):
            began = time.perf_counter()
            spark.table("lake.bench.wide").write.format("noop").mode("append").save()
            scanned = time.perf_counter()
            read = changes.between(lake, "bench.wide", columns, since, until)
            for changed in (read.now(), read.deleted(columns[:1])):
                if changed is not None:
                    changed.write.format("noop").mode("append").save()
            ended = time.perf_counter()
            if turn:  # before that the JVM is not warm
                scans.append(scanned - began)
                feeds.append(ended - scanned)
        results[f"{name}_vs_scan"] = statistics.median(feeds) / statistics.median(scans)
        print(f"{name}: {statistics.median(feeds):.2f} s; scan: {statistics.median(scans):.2f} s", flush=True)
    return results


def _main(lake: TableStore, identifier: str) -> int:
    table = lake.load(identifier)
    assert table is not None
    return int(table.currentSnapshot().snapshotId())


def _small_files(context: Context, pipeline: Pipeline) -> None:
    """The table, created again with a million rows in many files."""
    for name in (pipeline.table.identifier, pipeline.table.bad_rows):
        context.spark.sql(f"drop table if exists lake.{name} purge")
    list(run(context, pipeline))
    rows: Any = context.spark.table(f"lake.{pipeline.table.identifier}").localCheckpoint()
    rows.repartition(FILES).writeTo(f"lake.{pipeline.table.identifier}").overwritePartitions()


def _bytes(pipeline: Pipeline) -> int:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    return int(metadata.summary(table.main)["total-files-size"])


if __name__ == "__main__":
    main()
