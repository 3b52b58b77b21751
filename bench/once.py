"""Lands all messages once and prints the JVM's highest resident memory in KiB: `python -m bench.once ours|hand SPECS BOOTSTRAP TOPIC`."""

from __future__ import annotations

import sys
from pathlib import Path

from bench import handwritten, load
from framework.engine.context import Context
from framework.engine.loop import batches
from framework.plan.passes import make


def main(who: str, specs: str, bootstrap: str, topic: str) -> None:
    context = Context(make(Path(specs)))
    if who == "ours":
        list(batches(context, context.plan.pipelines[0]))
    else:
        context.spark.sql("drop table if exists lake.hand.once purge")
        handwritten.create(context.spark, "lake.hand.once")
        handwritten.append(context.spark, "lake.hand.once", bootstrap, topic, *load.offsets(bootstrap, topic))
    pid = context.spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{pid}/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    context.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
