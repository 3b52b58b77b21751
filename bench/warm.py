"""Whole processes that attach to the Spark which an earlier one left behind, with the spec edited between them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import load
from framework.core.spark import warm_jvm

BARS = {
    "warm_test_s": "≤ 1.5", "warm_preview_s": "≤ 2", "warm_run_1000_s": "≤ 2", "warm_run_vs_cold_spark": "≤ 0.3", "warm_tests_50_s": "≤ 12",
    "warm_heap_100_vs_20": "≤ 1.05",
}  # fmt: skip
TURNS = 7
TEST = """
  - name: test {number}
    given: [{{side: BUY, quantity: 1, symbol: A, price: -1.5, account: a, userid: u, at: 2026-01-05T10:00:00Z}}]
    expect: [{{anomaly_flag: NEGATIVE_PRICE}}]
"""
ROOT = Path(__file__).resolve().parent.parent


def measured(bootstrap: str) -> dict[str, float]:
    for topic in ("often", "bare"):
        load.send(bootstrap, topic, 1000)
    folder = load.specs(bootstrap, {"often": "often"})
    large_folder = load.specs(bootstrap, {"many": "often"})
    for place, tests in ((folder, 1), (large_folder, 50)):
        with (place / "bench.yaml").open("a") as file:
            file.write("tests:" + "".join(TEST.format(number=number) for number in range(tests)))
    commands = {"warm_test_s": ("test",), "warm_preview_s": ("preview", "often"), "warm_run_1000_s": ("run",)}
    seconds: dict[str, list[float]] = {name: [] for name in (*commands, "bare_session_1000_s")}
    for turn in range(TURNS):
        for name, words in commands.items():
            _edited(folder, turn, name)
            seconds[name].append(_process(_sluice(*words, "--specs", str(folder))))
        if turn < 3:
            bare = [sys.executable, "-m", "bench.once", "hand", str(load.specs(bootstrap, {"bare": "bare"})), bootstrap, "bare"]
            seconds["bare_session_1000_s"].append(_process(bare))
        load.send(bootstrap, "often", 1000)
        print(f"turn {turn} warm: " + ", ".join(f"{name} {durations[-1]:.1f}" for name, durations in seconds.items()), flush=True)
    results = {name: statistics.median(durations[1:]) for name, durations in seconds.items()}  # the first one starts Spark
    results["warm_run_vs_cold_spark"] = results["warm_run_1000_s"] / results["bare_session_1000_s"]
    results["warm_tests_50_s"] = statistics.median(_process(_sluice("test", "--specs", str(large_folder))) for _ in range(3))
    warm_jvm.end()
    return {**results, "warm_heap_100_vs_20": _heap(folder)}


def _heap(folder: Path) -> float:
    """The heap of the one JVM behind a hundred commands, relative to that behind twenty."""
    command = [sys.executable, "-m", "tests.support.warm_runs", str(folder), "100"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment())
    (first_pid, first_heap), (second_pid, second_heap) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert first_pid == second_pid, "it is another JVM"
    warm_jvm.end()
    return second_heap / first_heap


def _edited(folder: Path, turn: int, name: str) -> None:
    """Edits the spec, so that another price is unusual from now on."""
    file = folder / "bench.yaml"
    head, _, rest = file.read_text().partition("price > ")
    _, _, tail = rest.partition(",")
    file.write_text(f"{head}price > {900 + 10 * turn + len(name) % 10},{tail}")


def _sluice(*words: str) -> list[str]:
    return [sys.executable, "-c", "from framework.host.cli import main; main()", *words]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("SLUICE_COLD", "CI")} | {"PYTHONPATH": str(ROOT)}


def _process(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=_environment())
    return time.perf_counter() - began
