"""Measures what keeps tables small: batches of a table with thousands of commits beside its first ones, and compaction beside Iceberg's own
procedure. `make bench-keep` runs it, some twenty minutes on two cores.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from bench import load
from bench.quick import place, report
from framework.engine.context import Context
from framework.engine.iceberg import metadata
from framework.engine.loop import catch_up
from framework.engine.maintain.maintain import maintain
from framework.model import Pipeline
from framework.plan.passes import make

COMMITS = 2000
FEW = 20
ROWS = 100  # of a commit
FILES = 400  # that are compacted
MILLION = 1_000_000
TURNS = 3
KEEP = "maintain: {compact_every: 1m, keep_at_least: 20, thin: {all_for: 10m, then_every: 1m}}"

BARS = {"commit_2000_vs_20": "≤ 1.2", "compaction_vs_spark": "≥ 0.9"}


def main() -> None:
    from framework.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        folder = load.specs(bootstrap, {"commits": "commits", "ours": "files", "theirs": "files"})
        specs = (folder / "bench.yaml").read_text()
        (folder / "bench.yaml").write_text(
            specs.replace("into: {table: bench.commits}", f"into: {{table: bench.commits}}\n{KEEP}")
        )
        context = Context(make(folder))
        results = {**_commits(context, bootstrap), **_compaction(context, bootstrap)}
        context.stop()
    report(results, BARS, time.monotonic() - began)


def _pipeline(context: Context, name: str) -> Pipeline:
    return next(each for each in context.plan.pipelines if each.name == name)


def _commits(context: Context, bootstrap: str) -> dict[str, float]:
    """Batches as `sluice run --every` makes them, with the maintenance that follows when it is due, which is not counted."""
    pipeline = _pipeline(context, "commits")
    load.send(bootstrap, "commits", ROWS)
    seconds: list[float] = []
    kept: list[str] = []
    for number in range(COMMITS + FEW):
        load.send(bootstrap, "commits", ROWS)
        catch_up(
            context, [pipeline], lambda batch: seconds.append(batch.seconds), lambda: False,
            on_maintained=lambda done: kept.extend(done.says),
        )  # fmt: skip
        if number % 100 == 0:
            last = statistics.median(seconds[-FEW:])
            print(f"commit {number}: {last:.2f} s; maintenance so far: {len(kept)} times, {kept[-2:]}", flush=True)
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    files = int(metadata.summary(table.main)["total-data-files"])
    return {
        "commit_2000_vs_20": statistics.median(seconds[-FEW:]) / statistics.median(seconds[FEW : 2 * FEW]),
        "commit_20_s": statistics.median(seconds[FEW : 2 * FEW]),
        "files_after_2000": files,
        "snapshots_after_2000": len(table.snapshots),
        "metadata_bytes_after_2000": Path(urlparse(table.file).path).stat().st_size,
    }


def _compaction(context: Context, bootstrap: str) -> dict[str, float]:
    """The same small files, by `sluice maintain` and by Iceberg's procedure, in turns; MiB a second."""
    load.send(bootstrap, "files", MILLION)
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(TURNS + 1):
        for name, found in rates.items():
            pipeline = _pipeline(context, name)
            _small_files(context, pipeline)
            size = _bytes(pipeline)
            began = time.perf_counter()
            if name == "ours":
                list(maintain(context, pipeline))
            else:
                context.spark.sql(f"call lake.system.rewrite_data_files(table => '{pipeline.table.identifier}')").collect()
            if turn:  # before that the JVM is not warm
                found.append(size / (1 << 20) / (time.perf_counter() - began))
            print(
                f"turn {turn} compaction: {name} {found[-1] if found else 0:.1f} MiB/s of {size / (1 << 20):.0f} MiB", flush=True
            )
    ours, theirs = (statistics.median(rates[name]) for name in rates)
    return {"compaction_vs_spark": ours / theirs, "compaction_mib_per_s": ours}


def _small_files(context: Context, pipeline: Pipeline) -> None:
    """The table, created again with a million rows in many files."""
    for name in (pipeline.table.identifier, pipeline.table.bad_rows):
        context.spark.sql(f"drop table if exists lake.{name} purge")
    catch_up(context, [pipeline], lambda batch: None, lambda: False)
    rows: Any = context.spark.table(f"lake.{pipeline.table.identifier}").localCheckpoint()
    rows.repartition(FILES).writeTo(f"lake.{pipeline.table.identifier}").overwritePartitions()


def _bytes(pipeline: Pipeline) -> int:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    return int(metadata.summary(table.main)["total-files-size"])


if __name__ == "__main__":
    main()
