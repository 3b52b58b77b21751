"""Measures the parts of a warm append of a million messages: each part alone, in turns, medians; `python -m bench.stages`."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from bench import handwritten, load
from bench.quick import MESSAGES, TURNS, _handwritten, _timed, place, whole
from framework.core.context.context import Context
from framework.core.kafka.spark_reader import read
from framework.core.rows.frame import frame_of
from framework.core.rules.protocol import Partition, Range, partition
from framework.host.plans import make
from framework.plan import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_KAFKA = ("partition", "offset", "timestamp")


def main() -> None:
    from framework.machine.services import kafka

    with place() as home, kafka.running(home) as bootstrap:
        load.send(bootstrap, "clean", MESSAGES)
        context = Context(make(load.specs(bootstrap, {"clean": "clean"})))
        pipeline = context.plan.pipeline("clean")
        assert pipeline
        seconds = _seconds(context, bootstrap, pipeline)
        context.stop()
    print(f"\n{'seconds for 1,000,000 messages':<44}{os.cpu_count()} cores")
    for name, durations in seconds.items():
        print(f"{name:<44}{statistics.median(durations[2:]):>6.2f}")


def _seconds(context: Context, bootstrap: str, pipeline: Pipeline) -> dict[str, list[float]]:
    spark = context.spark
    starts, ends = load.offsets(bootstrap, "clean")
    numbers = count()
    range_ = Range(_of_topic(starts), _of_topic(ends), MESSAGES)
    messages = read(spark, pipeline, range_, context.plan.secrets)
    rows = frame_of(messages, pipeline, range_.size).good
    whole(context, pipeline)
    by_hand = handwritten.rows(_parsed(messages))
    landed = handwritten.rows(_parsed(messages)).where("_kafka_offset >= 0").persist()
    landed.count()
    parts: dict[str, Callable[[], float]] = {
        "Kafka: the messages alone": _to_nothing(messages.select("key", "value", "headers", *_KAFKA)),
        "Kafka and Sluice's decoder, steps, bad rows": _to_nothing(rows),
        "Kafka and from_json": _to_nothing(by_hand),
        "Parquet: the rows from memory": lambda: _timed(landed.writeTo(_emptied(context)).append),
        "the whole of Sluice": partial(whole, context, pipeline),
        "the whole of the hand-written job": lambda: _handwritten(context, bootstrap, f"lake.hand.t{next(numbers)}"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for turn in range(TURNS + 2):
        for name, part in parts.items():
            seconds[name].append(part())
            print(f"turn {turn} {name}: {seconds[name][-1]:.2f} s", flush=True)
    return seconds


def _of_topic(offsets: Mapping[int, int]) -> dict[Partition, int]:
    return {partition("clean", number): offset for number, offset in offsets.items()}


def _parsed(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    return messages.select(functions.from_json(functions.col("value").cast("string"), handwritten.SCHEMA).alias("m"), *_KAFKA)


def _to_nothing(rows: DataFrame) -> Callable[[], float]:
    return lambda: _timed(rows.write.format("noop").mode("overwrite").save)


def _emptied(context: Context) -> str:
    """A new table for the rows from memory."""
    context.spark.sql("drop table if exists lake.bench.memory purge")
    handwritten.create(context.spark, "lake.bench.memory")
    return "lake.bench.memory"


if __name__ == "__main__":
    main()
