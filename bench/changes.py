"""Measures formats next to JSON: Avro (also next to a job written by hand, and 500 schema ids next to one) and changes of Debezium.
All in turns, in one run.

It never fails on a number. `make bench-changes` runs it, below ten minutes on two cores.
"""

from __future__ import annotations

import io
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import handwritten, load
from bench.quick import TURNS, place, report, whole
from framework.core.context.context import Context
from framework.host.plans import make
from framework.messages.registry.client import Registry
from framework.plan import Cluster, SecretStore, Security

MESSAGES = 1_000_000
IDS = 500
OPTIONAL = 20  # fields of which each of the 500 schemas has some

FIELDS: list[dict[str, Any]] = [
    {"name": "side", "type": "string"}, {"name": "quantity", "type": "int"}, {"name": "symbol", "type": "string"},
    {"name": "price", "type": "double"}, {"name": "account", "type": "string"}, {"name": "userid", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]  # fmt: skip
TRADE = {"type": "record", "name": "Trade", "fields": FIELDS}

PIPELINE = """
---
topic: {name}
value: avro
---
pipeline: {name}
from: {{topic: {name}}}
{steps}
into: {{table: bench.{name}}}
"""


def main() -> None:
    from framework.machine.java import jars
    from framework.machine.services import kafka, registry

    began = time.monotonic()
    with place() as home:
        jars.fetch("registry")
        with kafka.running(home) as bootstrap, registry.running(home) as url:
            print(f"sending {5 * MESSAGES:,} messages", flush=True)
            load.send(bootstrap, "json", MESSAGES)
            load.send(bootstrap, "debezium", MESSAGES, envelope=True)
            _send(bootstrap, url, "avro", [TRADE])
            _send(bootstrap, url, "one", [_with(range(OPTIONAL))])
            _send(bootstrap, url, "many", [_with(optional) for optional in _sets()])
            report(_measured(bootstrap, url), BARS, time.monotonic() - began)


def _with(optional: Any) -> dict[str, Any]:
    fields = [{"name": f"x{number}", "type": ["null", "int"], "default": None} for number in optional]
    return {**TRADE, "fields": [*FIELDS, *fields]}


def _sets() -> Iterator[list[int]]:
    """The optional fields of each of the 500 schemas; no two have the same."""
    chance = random.Random(1)
    known_sets: set[tuple[int, ...]] = set()
    while len(known_sets) < IDS:
        fields = sorted(chance.sample(range(OPTIONAL), chance.randint(3, 9)))
        if tuple(fields) not in known_sets:
            known_sets.add(tuple(fields))
            yield fields


def _send(bootstrap: str, url: str, topic: str, schemas: list[dict[str, Any]]) -> None:
    """The trades of the JSON topic, by one schema after the other."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, load.PARTITIONS, 1)])[topic].result()
    registry = Registry(Cluster(name="main", bootstrap=bootstrap, security=Security(), registry=url), SecretStore())
    ids = [registry.register(f"{topic}-value", "AVRO", json.dumps(schema)) for schema in schemas]
    parsed = [fastavro.parse_schema(schema) for schema in schemas]
    settings = {"linger.ms": 20, "compression.type": "lz4", "queue.buffering.max.messages": 2_000_000}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    chance = random.Random(1)
    for number in range(MESSAGES):
        index = number // load.PARTITIONS % len(ids)
        buffer = io.BytesIO()
        buffer.write(b"\0" + ids[index].to_bytes(4, "big"))
        fastavro.schemaless_writer(buffer, parsed[index], _trade(chance, number))
        producer.produce(topic, buffer.getvalue(), partition=number % load.PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def _trade(chance: random.Random, number: int) -> dict[str, Any]:
    trade = {
        "side": chance.choice(["BUY", "SELL"]), "quantity": chance.randint(1, 5000), "symbol": chance.choice(["ZVZZT", "ZBZX", "ZJZZT"]),
        "price": float(chance.randint(-10, 1000)), "account": chance.choice(["ABC123", "XYZ789"]), "userid": f"User_{chance.randint(1, 9)}",
        "at": 1767607200000 + number,
    }  # fmt: skip
    return trade | {f"x{field}": number + field for field in range(OPTIONAL)}


def _measured(bootstrap: str, url: str) -> dict[str, float]:
    """Seconds of whole batches of all messages, in one warm session, in turns."""
    folder = load.specs(bootstrap, {"json": "json"})
    steps = load.TRADES[load.TRADES.index("steps:") : load.TRADES.index("\ninto: {{table")].replace("{{", "{").replace("}}", "}")
    text = (folder / "bench.yaml").read_text().replace("---\ncatalog", f'registry: "{url}"\n---\ncatalog', 1)
    for name in ("avro", "one", "many"):
        text += PIPELINE.format(name=name, steps=steps if name == "avro" else "")
    text += load.TRADES.format(name="debezium", topic="debezium").replace("value: json", "value: debezium_json")
    (folder / "bench.yaml").write_text(text)
    context = Context(make(folder))
    seconds: dict[str, list[float]] = {}
    for turn in range(TURNS + 2):
        ways: dict[str, Callable[[], float]] = {}
        for name in ("json", "avro", "one", "many", "debezium"):
            pipeline = context.plan.pipeline(name)
            assert pipeline
            ways[name] = partial(whole, context, pipeline)
        ways["hand"] = partial(_by_hand, context, bootstrap, f"lake.hand.t{turn}")
        for name, run in ways.items():
            duration = run()
            if turn >= 2:  # before that the JVM is not warm
                seconds.setdefault(name, []).append(duration)
            print(f"turn {turn} {name}: {MESSAGES / duration:,.0f} rows/s", flush=True)
    context.stop()
    median = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "avro_vs_json": median["json"] / median["avro"],
        "avro_vs_handwritten": median["hand"] / median["avro"],
        "schema_ids_500_cost": median["many"] / median["one"],
        "debezium_json_vs_json": median["json"] / median["debezium"],
        **{f"{name}_rows_per_s": MESSAGES / value for name, value in median.items()},
    }


def _by_hand(context: Context, bootstrap: str, table: str) -> float:
    """The seconds in which Spark's own `from_avro`, with the one schema, makes the same columns and flag, and appends them."""
    from pyspark.sql import DataFrame, functions
    from pyspark.sql.avro.functions import from_avro

    def rows(messages: DataFrame) -> DataFrame:
        value = from_avro(functions.expr("substring(value, 6)"), json.dumps(TRADE)).alias("m")
        return handwritten.rows(messages.select(value, "partition", "offset", "timestamp"))

    return handwritten.seconds(context.spark, bootstrap, "avro", table, handwritten.COLUMNS, rows)


BARS = {"avro_vs_handwritten": "≥ 1.8", "schema_ids_500_cost": "≤ 1.5", "debezium_json_vs_json": "≥ 0.6"}


if __name__ == "__main__":
    main()
