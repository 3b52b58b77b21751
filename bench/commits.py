"""Measures what a commit each second costs after hours: the seconds of a batch of few messages, and the metadata that it writes, in a table
of 20 commits and in one of 20,000.

The commits in between are not made. The older table's metadata gets the snapshots that its maintenance would have left of them, so that a
batch reads and writes what it would have to; its files of rows are few, as maintenance compacts them.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import time
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from bench import load
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.maintain import many_commits
from framework.core.publish.batch import next_batch
from framework.core.rules import protocol
from framework.host.plans import make
from framework.plan import Pipeline
from framework.systems import catalogs
from framework.systems.catalogs import sql

COMMITS, TURNS = 20_000, 20
BARS = {"commit_20000_vs_20": "≤ 1.2", "metadata_kib_per_commit": "≤ 200"}
TOPIC = """
---
topic: ticks
value: json
columns: {n: bigint}
"""
PIPELINE = """
---
pipeline: {name}
from: {{topic: ticks}}
run: {{every: 1s}}
into: {{table: bench.{name}{into}}}
"""
SHAPES = {"append": "", "newest": ", write: upsert, keys: [n]"}


def measured(bootstrap: str) -> dict[str, float]:
    ratios, sizes = [], []
    for name, into in SHAPES.items():
        young, old = f"young_{name}", f"old_{name}"
        folder = load.specs(bootstrap, {})
        with (folder / "bench.yaml").open("a") as file:
            file.write(TOPIC + "".join(PIPELINE.format(name=table, into=into) for table in (young, old)))
        plan = make(folder)
        context = Context(plan, warm=False)
        pipelines = [plan.pipeline(young), plan.pipeline(old)]
        seconds: dict[str, list[float]] = {young: [], old: []}
        written: dict[str, list[int]] = {young: [], old: []}
        for turn in range(2 * TURNS):
            if turn == TURNS:
                assert pipelines[1] is not None
                kept = _age(pipelines[1])
            load.produce(bootstrap, "ticks", (b'{"n": %d}' % (turn * 30 + number) for number in range(30)))
            for pipeline in pipelines:
                assert pipeline is not None
                before = _files(pipeline)
                began = time.monotonic()
                assert next_batch(context, pipeline) is not None
                if turn >= TURNS:
                    seconds[pipeline.name].append(time.monotonic() - began)
                    after = _files(pipeline)
                    written[pipeline.name].append(sum(size for path, size in after.items() if path not in before))
        context.stop()
        medians = {table: statistics.median(values) for table, values in seconds.items()}
        kib = {table: statistics.median(values) / 1024 for table, values in written.items()}
        print(
            f"{name}: {medians[young]:.3f} s and {kib[young]:.0f} KiB at {TURNS} commits, {medians[old]:.3f} s and {kib[old]:.0f} KiB at"
            f" {COMMITS:,}, of which {kept} snapshots are left",
            flush=True,
        )
        ratios.append(medians[old] / medians[young])
        sizes.append(kib[old])
    return {"commit_20000_vs_20": max(ratios), "metadata_kib_per_commit": max(sizes)}


def _files(pipeline: Pipeline) -> dict[str, int]:
    """The files of a table's metadata, with their sizes."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    if table is None:
        return {}
    folder = Path(table.files.path(str(table.document["location"])), "metadata")
    return {str(path): path.stat().st_size for path in folder.iterdir()}


def _age(pipeline: Pipeline) -> int:
    """Gives a table the snapshots that maintenance leaves of a commit each second. Returns how many it has then."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    document: dict[str, Any] = json.loads(json.dumps(table.document))
    own = document["snapshots"]
    now = datetime.now(timezone.utc)
    times = [now - timedelta(seconds=number) for number in range(COMMITS)]
    kept = sorted(many_commits.kept(times, pipeline.maintain, now))
    for entry in own:
        entry["sequence-number"] += COMMITS
    older = []
    for index in kept:
        if index > len(own):
            copy = json.loads(json.dumps(own[-1]))
            copy |= {"snapshot-id": uuid.uuid4().int >> 65, "sequence-number": COMMITS - index}
            copy |= {"timestamp-ms": int(times[index].timestamp() * 1000), "parent-snapshot-id": uuid.uuid4().int >> 65}
            older.append(copy)
    document["snapshots"] = [*reversed(older), *own]
    document["snapshot-log"] = [
        {"snapshot-id": entry["snapshot-id"], "timestamp-ms": entry["timestamp-ms"]} for entry in document["snapshots"]
    ]
    document["last-sequence-number"] += COMMITS
    position = json.loads(document["properties"][protocol.POSITION])
    document["properties"][protocol.POSITION] = json.dumps({**position, "sequence": position["sequence"] + COMMITS})
    _swap(pipeline, document)
    return len(document["snapshots"])


def _swap(pipeline: Pipeline, document: dict[str, Any]) -> None:
    """Makes this the table's metadata."""
    client = catalogs.client_of(pipeline.table.catalog)
    assert isinstance(client, sql.Sql)
    location = f"{document['location']}/metadata/{COMMITS:05d}-{uuid.uuid4()}.metadata.json"
    client.files_of(pipeline.table.identifier).write(location, json.dumps(document).encode())
    with sqlite3.connect(client.database) as connection:
        query = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_namespace || '.' || table_name = ?"
        assert connection.execute(query, (location, pipeline.table.identifier)).rowcount == 1
