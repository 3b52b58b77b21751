"""Measures `sluice stream`: how long a message takes from a sender outside until a reader outside sees it in a table, with one and with
five pipelines; what an idle stream costs; and how soon it commits after a restart.

`make bench-stream` runs it, a quarter of an hour on two cores. Nothing of Sluice is in the sender and reader (`bench/outside.py`).
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from bench import commits, load, questions
from bench.quick import place, report
from framework.core.query import database
from framework.host.plans import make
from framework.systems import catalogs
from framework.systems.catalogs import sql

PARTITIONS = 3
COUNTED = 30  # seconds of messages
WARM = 60  # seconds of messages before: Java compiles what runs often, and a stream runs for months
SOON = 10  # seconds, behind which delays are printed as those of the first minute
QUIET, MANY = 100, 200  # pipelines
BACKLOG = 5_000_000  # messages
BARS = {
    "visible_one_p50_s": "≤ 0.5", "visible_one_p99_s": "≤ 1.5", "visible_p50_s": "≤ 1", "visible_p99_s": "≤ 3",
    "visible_2000_p50_s": "≤ 1", "visible_2000_p99_s": "≤ 3", "idle_100_core": "≤ 0.05",
    "beside_backlog_p99_ratio": "≤ 2", "tables_200_p99_s": "≤ 30", "query_p95_s": "≤ 0.5",
}  # fmt: skip
TOPIC = """
---
topic: {name}
value: json
columns: {{n: bigint, part: int, id: int, key: string, amount: double, sent: double}}
"""
PIPELINE = """
---
pipeline: {name}
from: {{topic: {topic}}}
run: on_new_data
{steps}
into: {{table: bench.{name}{into}}}
"""
SHAPES = {
    "append": ("", ""),
    "flagged": ("steps: [flag: {into: size, otherwise: NORMAL, rules: [{when: amount > 90, label: LARGE}]}]", ""),
    "newest": ("", ", write: upsert, keys: [id]"),
    "totals": (
        "steps: [aggregate: {by: [part], measures: {n: max(n), messages: count(*), amount: sum(amount)}}]",
        ", write: accumulate",
    ),
    "once": ("steps: [dedup: {keys: [key]}]", ""),
}


def main() -> None:
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        report(measured(bootstrap), BARS | commits.BARS, time.monotonic() - began)


def measured(bootstrap: str) -> dict[str, float]:
    results = commits.measured(bootstrap)
    folder = specs(bootstrap, ["append"])
    with streaming(folder) as stream:
        results |= _percentiles("visible_one", delays(bootstrap, folder, ["append"], 10))
    results["restart_to_first_commit_s"] = stream.first_commit
    folder = specs(bootstrap, list(SHAPES))
    with streaming(folder) as stream:
        for name, rate, first in (("visible", 10, 10_000), ("visible_2000", 2_000, 1_000_000)):
            warm = WARM if rate < 100 else SOON  # by then it has run for minutes
            results |= _percentiles(name, delays(bootstrap, folder, list(SHAPES), rate, first, warm))
    results["beside_backlog_p99_ratio"] = beside_backlog(bootstrap)
    with streaming(specs(bootstrap, [], quiet=QUIET)) as stream:
        results["idle_100_core"] = stream.core(20.0)
    names = [f"many{number}" for number in range(MANY)]
    folder = specs(bootstrap, names)
    with streaming(folder):
        results["tables_200_p99_s"] = _percentiles("tables", delays(bootstrap, folder, names, 1))["tables_p99_s"]
    results["query_p95_s"] = asked(bootstrap)
    return results


def asked(bootstrap: str) -> float:
    """The seconds below which 95 of 100 questions are answered while readings come."""
    folder = questions.loaded(bootstrap)
    with streaming(folder):
        seconds = questions.seconds_of(bootstrap, folder)
    for name, values in seconds.items():
        print(f"{name}: {len(values)} times, median {statistics.median(values):.2f} s, longest {max(values):.2f} s", flush=True)
    ordered = sorted(value for values in seconds.values() for value in values)
    return ordered[int(len(ordered) * 0.95)]


def beside_backlog(bootstrap: str) -> float:
    """How many times longer one message in a hundred takes while a sixth pipeline loads what waits for it than before."""
    value = b'{"n":1,"part":0,"id":7,"key":"k","amount":5.0,"sent":0.0}'
    load.produce(bootstrap, "backlog", (value for _ in range(BACKLOG)), PARTITIONS)
    folder = specs(bootstrap, list(SHAPES))
    with streaming(folder) as stream:
        before = _percentiles("before", delays(bootstrap, folder, list(SHAPES), 10, first=20_000_000))["before_p99_s"]
        with (folder / "bench.yaml").open("a") as file:
            file.write(_documents("backlog"))
        slow = _percentiles("slow", delays(bootstrap, folder, list(SHAPES), 10, first=30_000_000, warm=0))["slow_p99_s"]
    print(f"the backlog: {stream.rows['backlog']:,} rows of {BACKLOG:,} meanwhile", flush=True)
    return slow / before


class Stream:
    """The command in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.began = time.monotonic()
        self.first_commit = 0.0
        self.rows: Counter[str] = Counter()
        program = str(Path(sys.executable).with_name("sluice"))
        self.process = subprocess.Popen(
            [program, "stream", "--log", "json", "--port", "0", "--specs", str(folder)], stdout=subprocess.PIPE, text=True
        )
        self._lines = threading.Thread(target=self._read, daemon=True)
        self._lines.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "BatchDone":
                self.first_commit = self.first_commit or time.monotonic() - self.began
                self.rows[event["pipeline"]] += event["rows"]
            else:
                print(f"stream: {event['message']}", flush=True)

    def core(self, seconds: float) -> float:
        """The share of one core that its processes take."""
        time.sleep(15)
        processes = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        time.sleep(seconds)
        return (sum(sum(process.cpu_times()[:2]) for process in processes) - before) / seconds


@contextmanager
def streaming(folder: Path) -> Iterator[Stream]:
    stream = Stream(folder)
    try:
        yield stream
    finally:
        stream.process.send_signal(signal.SIGTERM)
        assert stream.process.wait(60) == 0


def specs(bootstrap: str, names: Sequence[str], quiet: int = 0) -> Path:
    """The specs of some shapes, each of a topic of its own, and of pipelines that get no message."""
    folder = load.specs(bootstrap, {})
    all_names = [*names, *(f"quiet{number}" for number in range(quiet))]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for name in all_names:
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
            made.exception()  # it is there already
    with (folder / "bench.yaml").open("a") as file:
        file.writelines(map(_documents, all_names))
    return folder


def _documents(name: str) -> str:
    """A topic and its pipeline."""
    steps, into = SHAPES.get(name, ("", ""))
    return TOPIC.format(name=name) + PIPELINE.format(name=name, topic=name, steps=steps, into=into)


def delays(bootstrap: str, folder: Path, names: Sequence[str], rate: int, first: int = 0, warm: int = WARM) -> list[float]:
    """The seconds until each message was visible in each table, of those that count. `first`: the number of the first one."""
    client = catalogs.client_of(make(folder).catalogs[0])
    assert isinstance(client, sql.Sql)
    about = {
        "bootstrap": bootstrap, "topics": names, "tables": [f"bench.{name}" for name in names], "rate": rate,
        "count": rate * (warm + COUNTED), "first": first, "catalog": str(client.database), "patience": 60, "readers": min(5, len(names)),
        "extensions": database.extension_files(),
    }  # fmt: skip
    program = str(Path(__file__).with_name("outside.py"))
    answer = subprocess.run([sys.executable, program, json.dumps(about)], stdout=subprocess.PIPE, text=True, check=True)
    delays_by_table = json.loads(answer.stdout)
    for table, values in delays_by_table.items():
        assert len(values) == rate * (warm + COUNTED), f"{table} lacks messages"
        for which, counted in (("in the first minute", values[rate * SOON : rate * warm]), ("counted", values[rate * warm :])):
            if counted:
                print(
                    f"{rate}/s {table}, {which}: median {statistics.median(counted):.2f} s, longest {max(counted):.2f} s",
                    flush=True,
                )
    return [delay for values in delays_by_table.values() for delay in values[rate * warm :]]


def _percentiles(name: str, values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {f"{name}_p50_s": ordered[len(ordered) // 2], f"{name}_p99_s": ordered[int(len(ordered) * 0.99)]}


if __name__ == "__main__":
    main()
