"""Measures a REST catalog with an object store beside the SQLite file with a folder: the same million messages, in turns, in one warm
session. Everything is on this machine, so that no network is measured.

`make bench-catalogs` runs it, a few minutes on two cores.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench import load
from bench.quick import place, report, whole
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.run.events import Failed
from framework.core.run.run import run
from framework.host.plans import make
from framework.machine.services import catalog, kafka, s3
from framework.plan import ListedTable

MESSAGES = 1_000_000
TURNS = 5  # behind two that warm up
COMMITS = 50
BARS = {"rest_s3_vs_embedded": "≥ 0.7", "status_rest_s": "≤ 2", "publish_lag_p99_s": "≤ 5"}
REST = """
---
catalog: rest
type: rest
uri: {catalog}
oauth: {{client_id: "${{secret:oc_id}}", client_secret: "${{secret:oc_secret}}"}}
storage: {{endpoint: "{store}", region: us-east-1, access_key: "${{secret:s3_key}}", secret_key: "${{secret:s3_secret}}"}}
"""
LISTED = """
---
catalog: home
type: sql
uri: sqlite:///home.db
warehouse: s3://sluice/listed
storage: {{endpoint: "{store}", region: us-east-1, access_key: "${{secret:s3_key}}", secret_key: "${{secret:s3_secret}}"}}
---
pipeline: listed
from: {{topic: listed}}
into: {{table: bench.listed, catalog: home}}
publish: [{{catalog: rest, as: seen.listed}}]
---
topic: listed
value: json
columns: {{id: bigint}}
"""


def main() -> None:
    began = time.monotonic()
    catalog.get(print)
    with (
        place() as home, kafka.running(home) as bootstrap, s3.running(home) as store, catalog.running(home, store) as uri,
    ):  # fmt: skip
        load.send(bootstrap, "trades", MESSAGES)
        report(_measured(bootstrap, store, uri), BARS, time.monotonic() - began)


def _measured(bootstrap: str, store: str, uri: str) -> dict[str, float]:
    logins = {"OC_ID": catalog.CLIENT, "OC_SECRET": catalog.SECRET, "S3_KEY": s3.KEY, "S3_SECRET": s3.SECRET}
    os.environ.update({f"SLUICE_SECRET_{name}": value for name, value in logins.items()})
    folder = load.specs(bootstrap, {"embedded": "trades", "remote": "trades"})
    file = folder / "bench.yaml"
    text = file.read_text().replace("into: {table: bench.embedded}", "into: {table: bench.embedded, catalog: lake}")
    text = text.replace("into: {table: bench.remote}", "into: {table: bench.remote, catalog: rest}")
    file.write_text(text + REST.format(catalog=uri, store=store) + LISTED.format(store=store))
    context = Context(make(folder))
    rates: dict[str, list[float]] = {"embedded": [], "remote": []}
    for turn in range(TURNS + 2):
        for name in rates:
            pipeline = context.plan.pipeline(name)
            assert pipeline is not None
            seconds = whole(context, pipeline)
            if turn >= 2:
                rates[name].append(MESSAGES / seconds)
            print(f"turn {turn} {name}: {seconds:.2f} s", flush=True)
    lags = _lags(context, bootstrap)
    context.stop()
    return {
        "rest_s3_vs_embedded": statistics.median(rates["remote"]) / statistics.median(rates["embedded"]),
        "status_rest_s": statistics.median(_status(folder) for _ in range(TURNS)),
        "publish_lag_p99_s": max(lags),  # of fifty
        "publish_lag_median_s": statistics.median(lags),
        "embedded_rows_per_s": statistics.median(rates["embedded"]),
        "rest_s3_rows_per_s": statistics.median(rates["remote"]),
    }


def _lags(context: Context, bootstrap: str) -> list[float]:
    """Seconds from each commit of a table to the moment at which another catalog lists it, while the process runs."""
    pipeline = context.plan.pipeline("listed")
    assert pipeline is not None
    listed: ListedTable = pipeline.published[0].options
    listed_times: dict[int, float] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            listed_table = metadata.read(listed.catalog, listed.identifier)
            if listed_table is not None:
                listed_times.setdefault(listed_table.refs["main"], time.time())

    watching = threading.Thread(target=watch)
    watching.start()
    committed: dict[int, float] = {}
    for number in range(COMMITS):
        load.produce(bootstrap, "listed", [b'{"id": %d}' % number])
        for event in run(context, pipeline):
            if isinstance(event, Failed):
                raise event.error
        table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
        assert table is not None and table.main is not None
        committed[table.refs["main"]] = table.published(table.main).timestamp()
    done.wait(0.5)
    done.set()
    watching.join()
    return [listed_times[snapshot] - moment for snapshot, moment in committed.items()]


def _status(folder: Path) -> float:
    """The seconds of a new process that shows one table of the REST catalog."""
    began = time.perf_counter()
    command = [str(Path(sys.executable).with_name("sluice")), "status", "remote", "--specs", str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "caught up" in printed, printed
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
