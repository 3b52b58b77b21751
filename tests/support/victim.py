"""A run of its own process that dies or stops at a kill point: `python -m tests.support.victim SPECS POINT SIGNAL [WHAT]`.

WHAT is `run` of the first pipeline, its `rebuild`, its maintenance (`maintain`), a `replay` of its bad rows, `forget` of the key id=7
or `forget:COLUMN=VALUE`, `run:NAME` of another pipeline, or `all` pipelines as `sluice run` does it, `all:2` with two workers.
The signal JVM kills Spark's
process alone. At the point `writing` Spark has begun to write: there the warm JVM is stopped before the signal. At `sending 4000` a
follower has sent so many messages to its topic: there any JVM is stopped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from pyspark import SparkContext

from framework.base.errors import SluiceError
from framework.base.home import home
from framework.core.context.context import Context
from framework.core.maintain import maintain
from framework.core.run import run as loop
from framework.core.run.events import BatchDone, Failed
from framework.core.run.failures import raising
from framework.core.run.workers import runs_of
from framework.host.cli._interrupted import until_interrupted
from framework.host.plans import make
from framework.operations.forget import forget
from framework.operations.rebuild import rebuild
from framework.operations.undo import replay
from tests.support.waiting import until


def main(specs: str, point: str, number: str, task: str = "run") -> None:
    is_reached = False

    def die(reached_point: str) -> None:
        nonlocal is_reached
        if reached_point == point and not is_reached:
            is_reached = True
            print("reached", flush=True)
            if number == "JVM":
                os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)  # type: ignore[union-attr]
                SparkContext._gateway.proc.wait()  # type: ignore[union-attr]
            else:
                os.kill(os.getpid(), signal.Signals[number])
        if reached_point == "branched" and point == "writing":
            threading.Thread(target=writing, daemon=True).start()
        if reached_point == "begun" and point.startswith("sending "):
            threading.Thread(target=sending, daemon=True).start()

    def writing() -> None:
        active = SparkContext._active_spark_context.statusTracker().getActiveStageIds  # type: ignore[union-attr]
        until(lambda: len(active()) > 0, "Spark does not write", 60)
        os.kill(json.loads((home() / "warm" / "jvm").read_text())["pid"], signal.SIGSTOP)
        print("reached", flush=True)
        os.kill(os.getpid(), signal.Signals[number])

    def sending() -> None:
        cluster, topic = next(follower.sends_to for follower in pipeline.also if follower.sends_to)
        end = end_of(cluster.bootstrap, topic) + int(point.removeprefix("sending "))
        until(lambda: end_of(cluster.bootstrap, topic) >= end, "the follower does not send", 60)
        os.kill(SparkContext._gateway.proc.pid, signal.SIGSTOP)  # type: ignore[union-attr]
        print("reached", flush=True)
        os.kill(os.getpid(), signal.Signals[number])

    context = Context(make(Path(specs)), reached=die)
    pipelines = {candidate.name: candidate for candidate in context.plan.pipelines}
    pipeline = pipelines.get(task.removeprefix("run:"), context.plan.pipelines[0])
    try:
        if task == "rebuild":
            estimate, _ = rebuild.check_rebuild(context, pipeline, without_lost=False)
            for event in raising(rebuild.rebuild(context, pipeline, estimate, lambda: False)):
                print(event, flush=True)
        elif task == "maintain":
            print(*maintain.maintain(context, pipeline), flush=True)
        elif task.startswith("forget"):
            column, _, value = (task.removeprefix("forget:") if ":" in task else "id=7").partition("=")
            print(*forget.forget(context, pipeline, forget.judged(context, pipeline, {column: value}).key), flush=True)
        elif task == "replay":
            print(*raising(replay.replay(context, pipeline, replay.condition(""), lambda: False)), flush=True)
        elif task.startswith("all"):
            with until_interrupted() as stop, runs_of(context, int(task.partition(":")[2] or 1)) as runs:
                for event in runs(context.plan.pipelines, stop.is_set):
                    if isinstance(event, BatchDone):
                        print(event.batch, flush=True)
                    elif isinstance(event, Failed):
                        print(f"failed {event.pipeline.name}: {event.error}", flush=True)
        else:
            for batch in loop.batches(context, pipeline):
                print(batch, flush=True)
    except SluiceError as error:
        print(f"refused {error}", flush=True)
    print("ended", flush=True)
    context.stop()


def end_of(bootstrap: str, topic: str) -> int:
    """Return the number of offsets in the topic, those of open transactions too."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "isolation.level": "read_uncommitted"})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1] for partition in partitions]
    consumer.close()
    return sum(ends)


if __name__ == "__main__":
    main(*sys.argv[1:])
