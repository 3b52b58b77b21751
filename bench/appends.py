"""Measures appends of other shapes, each beside the same job written by hand: few and many partitions, thirty columns, texts of which no
two are equal, and a step by which rows of Spark go between the messages and the columns of the files. In turns, in one warm session.

`make bench-appends` runs it, ten minutes on two cores.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench import handwritten, load
from bench.quick import TURNS, compared, place, report, whole
from framework.core.context.context import Context
from framework.core.publish.tables import open_table
from framework.host.plans import make
from framework.plan import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGES = 1_000_000
BARS = {"append_steps_vs_handwritten": "≥ 2.3"}
MANY = tuple(f"n{number}" for number in range(15))
WIDE = ", ".join([*(f"{name} int" for name in MANY), *(f"t{name} string" for name in MANY)])
PIPELINE = """
---
topic: {name}
value: json
columns: {{{columns}}}
---
pipeline: {name}
from: {{topic: {name}}}
{steps}
into: {{table: bench.{name}}}
"""
VENUES = """
---
topic: venues
value: json
key: {format: string, as: symbol}
columns: {venue: string}
---
pipeline: venues
from: {topic: venues}
into: {table: bench.venues, write: upsert, keys: [symbol]}
"""


@dataclass(frozen=True)
class Shape:
    """Messages, and the columns that they become."""

    columns: str  # as in SQL
    value: Callable[[int], object]
    partitions: int = load.PARTITIONS
    is_joined: bool = False


def main() -> None:
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        report(_measured(bootstrap), BARS, time.monotonic() - began)


def _trade(number: int) -> dict[str, object]:
    return {
        "side": ("BUY", "SELL")[number % 2], "quantity": number * 7919 % 5000, "symbol": ("ZVZZT", "ZBZX", "ZJZZT")[number % 3],
        "price": float(number * 104_729 % 1000), "account": f"ABC{number % 5}", "userid": f"User_{number % 9}",
        "at": f"2026-01-05T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z",
    }  # fmt: skip


def _wide(number: int) -> dict[str, object]:
    numbers = {name: number * (at + 1) % 5000 for at, name in enumerate(MANY)}
    return {**numbers, **{f"t{name}": f"text {number % (10 * at + 3)}" for at, name in enumerate(MANY)}}


def _unique(number: int) -> dict[str, object]:
    return {"id": f"order-{number:010}", "note": f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}", "quantity": number % 9}


SHAPES = {
    "partitions_1": Shape(handwritten.SCHEMA, _trade, partitions=1),
    "partitions_24": Shape(handwritten.SCHEMA, _trade, partitions=24),
    "columns_30": Shape(WIDE, _wide),
    "unique_texts": Shape("id string, note string, quantity int", _unique),
    "steps": Shape(handwritten.SCHEMA, _trade, is_joined=True),
}


def _measured(bootstrap: str) -> dict[str, float]:
    for name, shape in SHAPES.items():
        print(f"sending {MESSAGES:,} messages to {name}", flush=True)
        load.produce(bootstrap, name, (json.dumps(shape.value(number)).encode() for number in range(MESSAGES)), shape.partitions)
    load.produce(bootstrap, "venues", ())
    context = Context(make(_specs(bootstrap)))
    _venues(context)
    seconds: dict[str, list[float]] = {}
    for turn in range(TURNS + 2):
        for name, shape in SHAPES.items():
            ours = whole(context, _pipeline(context, name))
            hand = _by_hand(context, bootstrap, name, shape, f"lake.hand.{name}{turn}")
            print(f"turn {turn} {name}: {ours:.2f} s, by hand {hand:.2f} s", flush=True)
            if turn >= 2:  # before that the JVM is not warm
                seconds.setdefault(name, []).append(hand / ours)
    for name in SHAPES:
        compared(context, f"lake.hand.{name}{TURNS + 1}", f"lake.bench.{name}")
    context.stop()
    return {f"append_{name}_vs_handwritten": statistics.median(ratios) for name, ratios in seconds.items()}


def _specs(bootstrap: str) -> Path:
    folder = load.specs(bootstrap, {})
    with (folder / "bench.yaml").open("a") as file:
        file.write(VENUES)
        for name, shape in SHAPES.items():
            columns = ", ".join(column.replace(" ", ": ", 1) for column in shape.columns.split(", "))
            steps = "steps: [join: {table: bench.venues, on: [symbol], take: [venue]}]" if shape.is_joined else ""
            file.write(PIPELINE.format(name=name, columns=columns, steps=steps))
    return folder


def _venues(context: Context) -> None:
    """Fills the table that is looked up."""
    pipeline = _pipeline(context, "venues")
    open_table(context, context.lake(pipeline), pipeline)
    kafka = "0 AS _kafka_partition, 0L AS _kafka_offset, timestamp'2026-01-01' AS _kafka_timestamp"
    rows = context.spark.sql(f"SELECT symbol, concat('V', symbol) AS venue, {kafka} FROM VALUES ('ZVZZT'), ('ZBZX') AS t(symbol)")
    rows.writeTo("lake.bench.venues").append()


def _pipeline(context: Context, name: str) -> Pipeline:
    pipeline = context.plan.pipeline(name)
    assert pipeline
    return pipeline


def _by_hand(context: Context, bootstrap: str, topic: str, shape: Shape, table: str) -> float:
    columns = f"{shape.columns}{', venue string' if shape.is_joined else ''}, {handwritten.OF_KAFKA}"
    return handwritten.seconds(
        context.spark, bootstrap, topic, table, columns, lambda messages: _rows(context, messages, shape), shape.partitions
    )


def _rows(context: Context, messages: DataFrame, shape: Shape) -> DataFrame:
    rows = handwritten.plain_rows(messages, shape.columns)
    if not shape.is_joined:
        return rows
    venues = context.spark.table("lake.bench.venues").select("symbol", "venue")
    names = [column.split()[0] for column in shape.columns.split(", ")]
    kafka_names = [column.split()[-1] for column in handwritten.KAFKA_COLUMNS]
    return rows.join(venues, "symbol", "left").select(*names, "venue", *kafka_names)


if __name__ == "__main__":
    main()
