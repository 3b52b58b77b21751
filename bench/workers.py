"""Measures `sluice run --workers 4`: eight pipelines of a thousand messages each, one after another and four at once, in turns of one warm
session. `python -m bench.workers`"""

from __future__ import annotations

import json
import statistics
import time

from bench import load
from bench.quick import place
from framework.core.context.context import Context
from framework.core.run.events import Failed
from framework.core.run.run import Runs, never
from framework.core.run.workers import runs_of
from framework.host.plans import make
from framework.plan import Plan

PIPELINES = 8
MESSAGES = 1_000
WORKERS = 4
TURNS = 9


def measured(bootstrap: str) -> dict[str, float]:
    topics = {f"small{number}": f"small{number}" for number in range(PIPELINES)}
    plan = make(load.specs(bootstrap, topics))
    context = Context(plan, warm=False)
    seconds: dict[str, list[float]] = {"alone": [], "at_once": []}
    with runs_of(context, 1) as alone, runs_of(context, WORKERS) as at_once:
        for turn in range(TURNS + 3):
            for name, runs in (("alone", alone), ("at_once", at_once)):
                for topic in topics.values():
                    load.send(bootstrap, topic, MESSAGES)
                taken = _timed(runs, plan)
                if turn >= 3:  # before that the JVM is not warm
                    seconds[name].append(taken)
                print(f"turn {turn} {name}: {taken:.2f} s", flush=True)
    context.stop()
    median = {name: statistics.median(values) for name, values in seconds.items()}
    return {f"{name}_s": value for name, value in median.items()} | {"workers_vs_alone": median["alone"] / median["at_once"]}


def _timed(runs: Runs, plan: Plan) -> float:
    began = time.perf_counter()
    failures = [event for event in runs(plan.pipelines, never) if isinstance(event, Failed)]
    assert not failures, failures
    return time.perf_counter() - began


def main() -> None:
    from framework.machine.services import kafka

    with place() as home, kafka.running(home) as bootstrap:
        print(json.dumps(measured(bootstrap)))


if __name__ == "__main__":
    main()
