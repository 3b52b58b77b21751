"""Measures steps that shape rows: duplicates left out of a million rows, three columns masked, and two looked up, each beside the same rows
appended, in turns, in one warm session; rows added to totals; and the file of an export.

`make bench-shaping` runs it, a quarter of an hour on two cores.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import time
from collections.abc import Callable

from bench import exports, handwritten, load, selects, totals
from bench.quick import place, report
from framework.core.context.context import Context
from framework.core.iceberg.lake import TableStore
from framework.core.publish.batch import next_batch
from framework.core.publish.tables import open_table
from framework.core.rules import protocol
from framework.host.plans import make
from framework.plan import Pipeline

MESSAGES = 1_000_000
MILLION = 1_000_000
# One in so many messages: half of them of the last ten thousand orders, half of the newest three million that are known.
REPEATS = 20
LATE = 3 * MILLION
TURNS = 5  # behind two that warm up
BARS = {
    "dedup_vs_handwritten": "≤ 0.15",
    "dedup_growth_loss": "≤ 0.3",
    "mask3_vs_handwritten": "≤ 0.05",
    "join_cost": "≤ 0.3",
    "moving_flag_cost": "≤ 0.25",
}

PIPELINE = """
---
pipeline: {name}
from: {{topic: {topic}}}
{steps}
into: {{table: bench.{name}}}
"""
COLUMNS = (
    "order_id string, channel string, product string, quantity int, price decimal(10,2), email string, phone string, name string,"
    " at timestamp"
)
TOPIC = """
---
topic: {topic}
value: json
columns: {{{columns}}}
event_time: at
"""
DEDUP = "steps: [dedup: {keys: [order_id]}]"
MASK = 'steps: [mask: {key: "${secret:bench}", columns: {email: hmac, phone: {partial: {keep_last: 4}}, name: redact}}]'
JOIN = "steps: [join: {table: bench.people, on: [email], take: [country, tier]}]"
MOVING = (
    "steps: [flag: {into: anomaly, otherwise: NORMAL, rules: "
    "[{beyond: {column: price, per: [product], deviations: 4, over: 24h}, label: UNUSUAL}]}]"
)
PEOPLE = """
---
topic: people
value: json
key: {format: string, as: email}
columns: {country: string, tier: string}
---
pipeline: people
from: {topic: people}
into: {table: bench.people, write: upsert, keys: [email]}
"""
# Each pipeline's topic, how many millions of rows are in its table before, and its steps.
TABLES = {
    "plain": ("ordered", 10, ""), "known1": ("ordered", 1, DEDUP), "known10": ("ordered", 10, DEDUP), "random10": ("random", 10, DEDUP),
    "masked": ("ordered", 10, MASK), "joined": ("ordered", 10, JOIN), "moving": ("ordered", 10, MOVING),
}  # fmt: skip


def main() -> None:
    from framework.machine.services import kafka

    began = time.monotonic()
    with place() as home, kafka.running(home) as bootstrap:
        parts = (totals, selects, exports)
        results = _shaped(bootstrap)
        bars = dict(BARS)
        for part in parts:
            results |= part.measured(bootstrap)
            bars |= part.BARS
        report(results, bars, time.monotonic() - began)


def _shaped(bootstrap: str) -> dict[str, float]:
    _send(bootstrap, "ordered", _ordered)
    _send(bootstrap, "random", _random)
    folder = load.specs(bootstrap, {})
    with (folder / "bench.yaml").open("a") as file:
        columns = re.sub(r"(^|, )(\w+) ([^, ]+(?:,\d+\))?)", r'\1\2: "\3"', COLUMNS)
        file.writelines(TOPIC.format(topic=topic, columns=columns) for topic in ("ordered", "random"))
        file.write(PEOPLE)
        file.writelines(PIPELINE.format(name=name, topic=topic, steps=steps) for name, (topic, _, steps) in TABLES.items())
    os.environ["SLUICE_SECRET_BENCH"] = "a key that only this run has"
    context = Context(make(folder))
    load.produce(bootstrap, "people", ())
    _people(context)
    bases = {name: _filled(context, name) for name in TABLES}
    seconds: dict[str, list[float]] = {name: [] for name in (*TABLES, "hand")}
    for turn in range(TURNS + 2):
        duration = _by_hand(context, bootstrap, f"lake.hand.t{turn}")
        if turn >= 2:
            seconds["hand"].append(duration)
        print(f"turn {turn} by hand: {duration:.2f} s", flush=True)
        for name, base in bases.items():
            duration, rows = _batch(context, name, base)
            if turn >= 2:
                seconds[name].append(duration)
            print(f"turn {turn} {name}: {duration:.2f} s, {rows:,} rows", flush=True)
    size = _key_bytes(context)
    context.stop()
    median = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "dedup_vs_handwritten": (median["known10"] - median["plain"]) / median["hand"],
        "dedup_cost": median["known10"] / median["plain"] - 1,
        "dedup_growth_loss": median["known10"] / median["known1"] - 1,
        "dedup_random_cost": median["random10"] / median["plain"] - 1,
        "dedup_index_bytes_per_key": 0.0,  # the table's own column is what is read
        "dedup_key_column_bytes_per_key": size,
        "dedup_key_column_gb_of_8_billion": size * 8,
        "mask3_vs_handwritten": (median["masked"] - median["plain"]) / median["hand"],
        "mask3_cost": median["masked"] / median["plain"] - 1,
        "join_vs_handwritten": (median["joined"] - median["plain"]) / median["hand"],
        "join_cost": median["joined"] / median["plain"] - 1,
        "moving_flag_vs_handwritten": (median["moving"] - median["plain"]) / median["hand"],
        "moving_flag_cost": median["moving"] / median["plain"] - 1,
        "append_s": median["plain"],
        "append_by_hand_s": median["hand"],
    }


def _ordered(number: int, chance: random.Random) -> str:
    """Orders are numbered; the table has those from 0 to ten million, or the newest million of them."""
    if number % REPEATS == 7:
        back = chance.randrange(10_000) if number % (2 * REPEATS) == 7 else number + chance.randrange(LATE)
        return _key(10 * MILLION + number - 1 - back)
    return _key(10 * MILLION + number)


def _random(number: int, chance: random.Random) -> str:
    if number % REPEATS == 7:
        return f"{chance.randrange(10 * MILLION) * 0x9E3779B97F4A7C15 % 2**64:016x}"
    return f"{(10 * MILLION + number) * 0x9E3779B97F4A7C15 % 2**64:016x}"


def _key(number: int) -> str:
    return f"o-{number:010}"


def _order(number: int, key: str, channel: str) -> bytes:
    person = number % 99_991
    return json.dumps(
        {
            "order_id": key, "channel": channel, "product": f"P{number % 997}", "quantity": number % 9 + 1, "price": number % 10_000 / 100,
            "email": f"c{person}@example.com", "phone": f"+49 30 {number % 10_000_000:07}", "name": f"Customer {person}",
            "at": f"2026-01-05T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        }
    ).encode()  # fmt: skip


def _send(bootstrap: str, topic: str, key: Callable[[int, random.Random], str]) -> None:
    chance = random.Random(1)
    numbers = range(MESSAGES)
    values = (_order(number, key(number, chance), chance.choice(("web", "mobile", "store"))) for number in numbers)
    load.produce(bootstrap, topic, values)


def _pipeline(context: Context, name: str) -> Pipeline:
    pipeline = context.plan.pipeline(name)
    assert pipeline is not None
    return pipeline


def _people(context: Context) -> None:
    """Fills the table of people with a hundred thousand rows; the messages name all of these people."""
    pipeline = _pipeline(context, "people")
    open_table(context, context.lake(pipeline), pipeline)
    values = (
        "concat('c', id, '@example.com') AS email", "concat('K', id % 50) AS country", "concat('T', id % 3) AS tier",
        "0 AS _kafka_partition", "-id - 1 AS _kafka_offset", "timestamp_seconds(1767571200) AS _kafka_timestamp",
    )  # fmt: skip
    context.spark.range(0, 100_000, 1, 1).selectExpr(*values).writeTo("lake.bench.people").append()


def _filled(context: Context, name: str) -> tuple[int, str]:
    """Fills a table. Returns its snapshot and position afterwards."""
    pipeline = _pipeline(context, name)
    lake: TableStore = context.lake(pipeline)
    open_table(context, lake, pipeline)
    topic, millions, _ = TABLES[name]
    key = "printf('o-%010d', id)" if topic == "ordered" else "lower(lpad(hex(id * -7046029254386353131), 16, '0'))"
    values = [
        f"{key} AS order_id", "'web' AS channel", "concat('P', id % 997) AS product", "CAST(id % 9 + 1 AS INT) AS quantity",
        "CAST(id % 10000 / 100 AS DECIMAL(10,2)) AS price", "concat('c', id % 99991, '@example.com') AS email", "'+49 30 1234' AS phone",
        "'Ann' AS name", "timestamp_seconds(1767571200 + id % 86400) AS at",
        "0 AS _kafka_partition", "-id - 1 AS _kafka_offset", "timestamp_seconds(1767571200) AS _kafka_timestamp",
    ]  # fmt: skip
    values += ["'NORMAL' AS anomaly"] if name == "moving" else []
    context.spark.conf.set("spark.sql.ansi.enabled", "false")  # the product of a key overflows, as it is meant to
    for part in range(10 - millions, 10):
        rows = context.spark.range(part * MILLION, (part + 1) * MILLION, numPartitions=1).selectExpr(*values)
        rows.writeTo(f"lake.bench.{name}").append()
    context.spark.conf.set("spark.sql.ansi.enabled", "true")
    table = lake.load(pipeline.table.identifier)
    assert table is not None
    return int(table.currentSnapshot().snapshotId()), str(table.properties().get(protocol.POSITION))


def _batch(context: Context, name: str, base: tuple[int, str]) -> tuple[float, int]:
    """The seconds of a batch of all messages, and its rows; the next batch reads the same ones."""
    pipeline = _pipeline(context, name)
    began = time.perf_counter()
    batch = next_batch(context, pipeline)
    seconds = time.perf_counter() - began
    assert batch is not None
    assert batch.read == MESSAGES
    snapshot, position = base
    if name != "moving":  # which is to measure on the rows of the last turn, too
        context.spark.sql(f"CALL lake.system.rollback_to_snapshot('bench.{name}', {snapshot})")
    context.spark.sql(f"ALTER TABLE lake.bench.{name} SET TBLPROPERTIES ('{protocol.POSITION}' = '{position}')")
    return seconds, batch.rows


def _by_hand(context: Context, bootstrap: str, table: str) -> float:
    """The seconds of a plain append of the same messages, written by hand."""
    columns = f"{COLUMNS}, {handwritten.OF_KAFKA}"
    return handwritten.seconds(
        context.spark, bootstrap, "ordered", table, columns, lambda messages: handwritten.plain_rows(messages, COLUMNS)
    )


def _key_bytes(context: Context) -> float:
    sizes = context.spark.sql(
        "SELECT sum(readable_metrics.order_id.column_size), sum(record_count) FROM lake.bench.known10.files"
    ).first()
    assert sizes is not None
    return float(sizes[0]) / float(sizes[1])


if __name__ == "__main__":
    main()
