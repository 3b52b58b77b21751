"""A run or a rebuild of its own process that dies or stops at a kill point: `python -m tests.victim SPECS POINT SIGNAL [rebuild]`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from framework.engine import loop, rebuild
from framework.engine.context import Context
from framework.errors import SluiceError
from framework.plan.passes import make


def main(specs: str, point: str, number: str, what: str = "run") -> None:
    there = False

    def at(reached: str) -> None:
        nonlocal there
        if reached == point and not there:
            there = True
            print("reached", flush=True)
            os.kill(os.getpid(), signal.Signals[number])

    context = Context(make(Path(specs)), at=at)
    pipeline = context.plan.pipelines[0]
    try:
        if what == "rebuild":
            ahead, _ = rebuild.look_first(context, pipeline, without_lost=False)
            print(rebuild.rebuild(context, pipeline, ahead, print, lambda: False), flush=True)
        else:
            for batch in loop.batches(context, pipeline):
                print(batch, flush=True)
    except SluiceError as error:
        print(f"refused {error}", flush=True)
    print("ended", flush=True)
    context.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
