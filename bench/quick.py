"""Measures Sluice against hand-written jobs: turns A B A B in one run, medians; prints a table and one JSON object as its last line.

It never fails on a number. `make bench-quick` runs it, a quarter of an hour on two cores.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import attempts, handwritten, install, load, warm
from framework.core.context.context import Context
from framework.core.publish.batch import next_batch
from framework.core.run.run import batches
from framework.host import class_archive
from framework.host.plans import make
from framework.plan import Pipeline

MESSAGES = 1_000_000
LARGE = 2_000_000
TURNS = 5
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        print(f"sending {2 * MESSAGES + LARGE:,} messages", flush=True)
        load.send(bootstrap, "clean", MESSAGES)
        load.send(bootstrap, "poisoned", MESSAGES, bad_every=100)
        load.send(bootstrap, "small", 1000)
        load.send(bootstrap, "large", LARGE)
        results = {**_cold(bootstrap), **_cold_large(bootstrap), **_warm(bootstrap), **_memory(bootstrap), **_many()}
        results |= warm.measured(bootstrap)
    results |= install.measured()
    report(results, BARS | warm.BARS, time.monotonic() - began)


@contextmanager
def place() -> Iterator[Path]:
    """A folder to work in, and Sluice's home in it, which has the jars of this clone and the classes that `sluice setup` caches."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        os.environ["SLUICE_HOME"] = str(home)
        os.environ["SLUICE_COLD"] = "1"  # each process starts its own, but in `warm`
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed Sluice is not compiled by each command
        home.mkdir()
        (home / "jars").symlink_to(ROOT / ".sluice" / "jars")
        os.chdir(folder)
        class_archive.create()  # one from before the jars were built again is silently not used
        try:
            yield home
        finally:
            os.chdir(ROOT)


def _warm(bootstrap: str) -> dict[str, float]:
    """Rows per second of whole batches, in one warm session, in turns."""
    plan = make(load.specs(bootstrap, {"clean": "clean", "poisoned": "poisoned", "small": "small"}))
    context = Context(plan)
    clean, poisoned, small = (plan.pipeline(name) for name in ("clean", "poisoned", "small"))
    assert clean and poisoned and small
    rates: dict[str, list[float]] = {"hand": [], "ours": [], "poisoned": []}
    for turn in range(TURNS + 2):
        for name, run in {
            "hand": partial(_handwritten, context, bootstrap, f"lake.hand.t{turn}"),
            "ours": partial(whole, context, clean),
            "poisoned": partial(whole, context, poisoned),
        }.items():
            seconds = run()
            if turn >= 2:  # before that the JVM is not warm
                rates[name].append(MESSAGES / seconds)
            print(f"turn {turn} {name}: {MESSAGES / seconds:,.0f} rows/s", flush=True)
    median = {name: statistics.median(values) for name, values in rates.items()}
    results = {
        "append_vs_handwritten": median["ours"] / median["hand"],
        "poisoned_vs_handwritten": median["poisoned"] / median["hand"],
        "append_rows_per_s": median["ours"],
        "handwritten_rows_per_s": median["hand"],
        **compared(context, f"lake.hand.t{TURNS + 1}", f"lake.{clean.table.identifier}"),
        **_small(context, bootstrap, small),
        **attempts.cost(context.spark),
    }
    context.stop()
    return results


def _handwritten(context: Context, bootstrap: str, table: str) -> float:
    handwritten.create(context.spark, table)
    starts, ends = load.offsets(bootstrap, "clean")
    began = time.perf_counter()
    handwritten.append(context.spark, table, bootstrap, "clean", starts, ends)
    return time.perf_counter() - began


def compared(context: Context, hand: str, ours: str) -> dict[str, float]:
    """Checks that both tables have the same rows. Returns how many files and bytes ours has, relative to the other."""
    columns = ", ".join(field.name for field in context.spark.table(hand).schema)
    for first_table, second_table in ((hand, ours), (ours, hand)):
        assert context.spark.sql(f"select {columns} from {first_table} except all select {columns} from {second_table}").isEmpty()
    sizes = {
        table: context.spark.sql(f"select count(*), sum(file_size_in_bytes) from {table}.files").first() for table in (hand, ours)
    }
    files, bytes_ = (ours_ / hand_ for ours_, hand_ in zip(sizes[ours] or (), sizes[hand] or (), strict=True))
    return {"append_files_vs_handwritten": files, "append_bytes_vs_handwritten": bytes_}


def whole(context: Context, pipeline: Pipeline) -> float:
    """The seconds of a batch of all messages, from the look at the table to the sweep; the table exists, as it does for the other job."""
    from framework.core.publish.tables import open_table

    lake = context.lake(pipeline)
    for name in (pipeline.table.identifier, pipeline.table.bad_rows):
        context.spark.sql(f"drop table if exists {pipeline.table.catalog.name}.{name} purge")
    open_table(context, lake, pipeline)
    began = time.perf_counter()
    batch = next_batch(context, pipeline)
    seconds = time.perf_counter() - began
    assert batch is not None
    assert batch.read == MESSAGES
    return seconds


def _small(context: Context, bootstrap: str, pipeline: Pipeline) -> dict[str, float]:
    """A warm batch of 1,000 rows from read to published, and a look that finds nothing."""
    list(batches(context, pipeline))
    handwritten.create(context.spark, "lake.hand.small")
    seconds, bare = [], []
    for _ in range(25):
        _, starts = load.offsets(bootstrap, "small")
        load.send(bootstrap, "small", 1000)
        seconds.append(_timed(lambda: next_batch(context, pipeline)))
        _, ends = load.offsets(bootstrap, "small")
        bare.append(_timed(partial(handwritten.append, context.spark, "lake.hand.small", bootstrap, "small", starts, ends)))
    nothing = [_timed(lambda: list(batches(context, pipeline))) for _ in range(10)]
    return {
        "batch_1000_p50_s": statistics.median(seconds[10:]),
        "bare_1000_p50_s": statistics.median(bare[10:]),
        "empty_tick_s": statistics.median(nothing),
    }


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _cold(bootstrap: str) -> dict[str, float]:
    """New processes in turns: one that lands 1,000 rows, a plain Structured Streaming job, and one that finds nothing."""
    durations: dict[str, list[float]] = {"cold_1000_s": [], "cold_1000_streaming_s": [], "cold_nothing_s": []}
    for turn in range(3):
        folder = load.specs(bootstrap, {f"cold{turn}": "small"})
        run = [sys.executable, "-c", "from framework.host.cli import main; main()", "run", "--specs", str(folder)]
        durations["cold_1000_s"].append(_process(run))
        durations["cold_1000_streaming_s"].append(
            _process([sys.executable, "-m", "bench.streaming", bootstrap, "small", str(turn)])
        )
        durations["cold_nothing_s"].append(_process(run))
        print(f"turn {turn} cold: " + ", ".join(f"{name} {seconds[-1]:.1f}" for name, seconds in durations.items()), flush=True)
    results = {name: statistics.median(seconds) for name, seconds in durations.items()}
    return {**results, "cold_1000_vs_streaming": results["cold_1000_s"] / results["cold_1000_streaming_s"]}


def _cold_large(bootstrap: str) -> dict[str, float]:
    """New processes in turns that load two million messages, from their start to their end."""
    seconds: dict[str, list[float]] = {"ours": [], "hand": [], "cached": []}
    for turn in range(3):
        folder = load.specs(bootstrap, {f"large{turn}": "large"})
        for job, durations in seconds.items():
            durations.append(_process([sys.executable, "-m", "bench.once", job, str(folder), bootstrap, "large"]))
        print(
            f"turn {turn} cold, {LARGE:,}: " + ", ".join(f"{job} {durations[-1]:.1f} s" for job, durations in seconds.items()),
            flush=True,
        )
    ours, hand, cached = (statistics.median(values) for values in seconds.values())
    return {
        "cold_2m_vs_handwritten": hand / ours,
        "cold_2m_vs_same_classes": cached / ours,
        "cold_2m_s": ours,
        "cold_2m_handwritten_s": hand,
    }


def _memory(bootstrap: str) -> dict[str, float]:
    """The highest resident memory of a JVM that lands all messages once, of each in a process of its own."""
    folder = load.specs(bootstrap, {"memory": "clean"})
    ours = _peak([sys.executable, "-m", "bench.once", "ours", str(folder), bootstrap, "clean"])
    hand = _peak([sys.executable, "-m", "bench.once", "hand", str(folder), bootstrap, "clean"])
    return {"append_memory_vs_handwritten": ours / hand, "append_memory_mib": ours / 1024, "handwritten_memory_mib": hand / 1024}


def _many() -> dict[str, float]:
    """1,000 specs into Dagster definitions, each time in a new process."""
    seconds = [float(_output([sys.executable, "-m", "bench.many", "1000"])) for _ in range(3)]
    return {"plan_1000_specs_s": statistics.median(seconds)}


def _peak(command: list[str]) -> float:
    return float(_output(command))


def _output(command: list[str]) -> str:
    """The last thing that a process prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout.split()[-1]


def _process(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=_environment())
    return time.perf_counter() - began


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


BARS = {
    "append_vs_handwritten": "≥ 3.0", "poisoned_vs_handwritten": "≥ 2.3", "append_memory_vs_handwritten": "≤ 0.7",
    "append_files_vs_handwritten": "≤ 1.05", "append_bytes_vs_handwritten": "≤ 1.05", "batch_1000_p50_s": "≤ 0.5",
    "cold_2m_vs_handwritten": "≥ 2.0", "empty_tick_s": "≤ 0.3", "cold_nothing_s": "≤ 2", "plan_1000_specs_s": "≤ 5",
    "attempt_cost": "≤ 0.05", "cold_1000_vs_streaming": "≤ 0.6",
}  # fmt: skip


def report(results: Mapping[str, float], bars: Mapping[str, str], seconds: float) -> None:
    print(f"\n{'what':<32} {'measured':>12}  bar")
    for name, value in results.items():
        print(f"{name:<32} {value:>12,.3f}  {bars.get(name, '')}")
    print(f"{seconds:.0f} s in all, {os.cpu_count()} cores\n")
    print(json.dumps({name: round(value, 4) for name, value in results.items()}))


if __name__ == "__main__":
    main()
