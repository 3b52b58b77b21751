"""Commands one after another, each with the warm JVM for itself: `python -m tests.support.warm_runs SPECS COUNT`.

Prints the JVM's process and, at the 20th and the last command, the bytes that it uses after a collection.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from framework.core.spark import warm
from framework.host.plans import make
from framework.operations.trials import trial


def main(specs: str, count: str) -> None:
    plan = make(Path(specs))
    for number in range(1, int(count) + 1):
        with trial.trials(plan) as trials:
            assert warm.is_leased(), "the JVM was busy"
            for outcome in trials.outcomes(
                [(pipeline, example) for pipeline in trials.plan.pipelines for example in pipeline.examples]
            ):
                assert outcome.error is None, outcome.error
            jvm: Any = trials.spark._jvm
            if number in (20, int(count)):
                print(jvm.java.lang.ProcessHandle.current().pid(), used(jvm), flush=True)


def used(jvm: Any) -> int:
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()

    def after_a_collection() -> int:
        jvm.System.gc()
        return int(memory.getHeapMemoryUsage().getUsed())

    return min(after_a_collection() for _ in range(5))  # memory that was dropped just now can take several collections


if __name__ == "__main__":
    main(*sys.argv[1:])
