"""Lands all messages once and prints the JVM's highest resident memory in KiB: `python -m bench.once WHO SPECS BOOTSTRAP TOPIC`.

`ours` is Sluice; `hand` is the hand-written job in a session as it would have it; `cached` is the same with Sluice's cache of classes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench import handwritten, load
from framework.core.context.context import Context
from framework.core.run.run import batches
from framework.host.plans import make


def main(job: str, specs: str, bootstrap: str, topic: str) -> None:
    plan = make(Path(specs))
    context = Context(plan, spark=(lambda: handwritten.session(plan)) if job == "hand" else None)
    if job == "ours":
        list(batches(context, context.plan.pipelines[0]))
    else:
        name = f"lake.{job}.{Path(specs).name}"
        handwritten.create(context.spark, name)
        handwritten.append(context.spark, name, bootstrap, topic, *load.offsets(bootstrap, topic))
    pid = context.spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{pid}/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    context.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
