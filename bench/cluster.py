"""Measures what a second worker brings: the same million messages by one worker with one core, by two, and by local Spark with two.

Master, workers, driver, Kafka, catalog and object store are all on this machine: what is measured is how the work is shared, no network.
`python -m bench.cluster` runs it, some minutes on two cores.
"""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench import load
from bench.catalogs import REST
from bench.quick import MESSAGES, place, report, whole
from framework.core.context.context import Context
from framework.host.plans import make
from framework.machine.services import catalog, kafka, s3
from tests.support.rest_catalog import environment
from tests.support.spark_cluster import cluster

TURNS = 3  # behind one that warms up
ENGINE = """---
engine: spark
master: {master}
memory: 2g
conf: {{spark.executor.memory: 800m, spark.executor.cores: "1"}}
"""


def main() -> None:
    began = time.monotonic()
    catalog.get(print)
    os.environ.update(environment())
    with (
        place() as home, kafka.running(home) as bootstrap, s3.running(home) as store, catalog.running(home, store) as uri,
    ):  # fmt: skip
        load.send(bootstrap, "trades", MESSAGES)
        lake = REST.format(catalog=uri, store=store)
        seconds = {"local": _in_a_process(bootstrap, lake, "local[2]", "local")}
        for count, name in ((1, "one"), (2, "two")):
            with cluster(Path("cluster", name), count) as workers:
                seconds[name] = _in_a_process(bootstrap, lake, workers.url, name)
        results = {f"{name}_rows_per_s": MESSAGES / duration for name, duration in seconds.items()}
        results |= {
            "two_workers_vs_one": seconds["one"] / seconds["two"],
            "two_workers_vs_local": seconds["local"] / seconds["two"],
        }
        report(results, {}, time.monotonic() - began)


def _in_a_process(*arguments: str) -> float:
    """Calls `_seconds` in a process of its own: settings of one Spark session would stay for the next."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_seconds, *arguments).result()


def _seconds(bootstrap: str, lake: str, master: str, name: str) -> float:
    """The seconds of one batch, in a warm session."""
    folder = load.specs(bootstrap, {"trades": "trades"})
    file = folder / "bench.yaml"
    into = f"into: {{table: bench.trades_{name}, catalog: rest}}"
    file.write_text(file.read_text().replace("into: {table: bench.trades}", into) + lake + ENGINE.format(master=master))
    context = Context(make(folder))
    pipeline = context.plan.pipeline("trades")
    assert pipeline is not None
    turns = []
    for _ in range(TURNS + 1):
        turns.append(whole(context, pipeline))
        print(f"{name}: {turns[-1]:.2f} s", flush=True)
    context.stop()
    return statistics.median(turns[1:])


if __name__ == "__main__":
    main()
