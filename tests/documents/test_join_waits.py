"""Rows that wait for a row of another table: either side may come first, and each row lands once."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from framework.base.clock import utc_now
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.publish import waiting
from framework.core.run import run as loop
from framework.operations.metrics import in_words
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan
from tests.support.kill_points import POINTS, Died
from tests.support.memory_messages import append
from tests.support.project import plan_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: payments
value: json
key: {{format: long, as: id}}
columns: {{amount: int, note: string}}
---
topic: orders
value: json
columns: {{id: int}}
---
pipeline: payments
from: {{topic: payments}}
into: {{table: {namespace}.payments, write: upsert, keys: [id]}}
---
pipeline: orders
from: {{topic: orders}}
steps:
  - join: {{table: {namespace}.payments, on: [id], take: [amount], within: 1h, missing: {missing}}}
{steps}into: {{table: {namespace}.orders, write: {write}}}
"""


class Shop:
    """Orders and payments, which come in any order. Each message is a batch of its own."""

    def __init__(self, lake: Path, spark: Any, missing: str = "keep", write: str = "append", steps: str = "") -> None:
        self.spark = spark
        namespace = f"n{uuid.uuid4().hex[:10]}"
        text = SPEC.format(namespace=namespace, missing=missing, write=write, steps=steps.format(namespace=namespace))
        self.plan: Plan = plan_for(lake, "127.0.0.1:1", text)
        self.sent: dict[str, list[Message]] = {"payments": [], "orders": []}
        self.time: datetime | None = None  # of its runs; None: now

    def pipeline(self, name: str) -> Pipeline:
        pipeline = self.plan.pipeline(name)
        assert pipeline is not None
        return pipeline

    def run(self, topic: str, dies: str = "") -> list[str]:
        def die(point: str) -> None:
            if point == dies:
                raise Died

        sent = self.sent[topic]
        context = Context(
            self.plan, spark=lambda: self.spark, source=GivenMessages(tuple(sent), sent[-1].batch if sent else 1, 1), reached=die,
            clock=lambda: self.time or utc_now(),
        )  # fmt: skip
        counts: list[str] = []
        with suppress(Died):
            for batch in loop.batches(context, self.pipeline(topic)):
                counts += in_words(batch)
        return counts

    def sends(self, topic: str, id_: int, ago: int = 0) -> None:
        sent, moment = self.sent[topic], datetime.now(timezone.utc) - timedelta(seconds=ago)
        value = {"id": id_} if topic == "orders" else {"amount": id_ * 10}
        key = id_.to_bytes(8, "big") if topic == "payments" else None
        append(sent, topic, json.dumps(value).encode(), at=moment, key=key)

    def lands(self, topic: str, id_: int, ago: int = 0) -> list[str]:
        self.sends(topic, id_, ago)
        return self.run(topic)

    def rows(self, bad: bool = False) -> list[Any]:
        table = self.pipeline("orders").table
        existing_table = table_state.table(table.catalog, table.bad_rows if bad else table.identifier)
        rows = existing_table.scan().to_arrow().to_pylist() if existing_table else []
        if bad:
            return [(row["code"], row.get("state")) for row in rows]
        return sorted(((row["id"], row["amount"]) for row in rows), key=repr)


def test_either_side_may_come_first(lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark)
    shop.lands("payments", 1)
    assert shop.lands("orders", 1) == ["1 row"]
    assert shop.lands("orders", 2) == ["0 rows", "1 bad"]
    assert shop.rows(bad=True) == [("waits", "open")]
    assert waiting.due(shop.pipeline("orders"), utc_now()) is None  # no payment came since
    assert shop.run("orders") == []

    shop.lands("payments", 2)
    assert shop.run("orders") == ["1 row"]

    assert shop.rows() == [(1, 10), (2, 20)]
    assert shop.rows(bad=True) == [("waits", "replayed")]
    assert shop.run("orders") == []


@pytest.mark.long
def test_a_row_is_tried_though_a_later_batch_has_read_the_change(lake: Path, spark: Any) -> None:
    """Orders come all the time, and a run dies between two tries."""
    shop = Shop(lake, spark, write="append}\nbatch: {rows: 1")
    shop.lands("payments", 1)
    for id_ in (2, 3):
        shop.lands("orders", id_)
    for id_ in (2, 3):
        shop.lands("payments", id_)
    shop.sends("orders", 1)
    shop.run("orders", dies="published")
    assert shop.rows() == [(1, 10)]
    assert waiting.due(shop.pipeline("orders"), utc_now()) is not None

    shop.run("orders", dies="published")
    assert len(shop.rows()) == 2
    shop.run("orders")

    assert shop.rows() == [(1, 10), (2, 20), (3, 30)]
    assert Counter(shop.rows(bad=True)) == {("waits", "replayed"): 2}
    assert waiting.due(shop.pipeline("orders"), utc_now()) is None


@pytest.mark.long
def test_a_row_that_waits_for_two_is_tried_once_for_each(lake: Path, spark: Any) -> None:
    longer = "  - join: {{table: {namespace}.payments, on: [id], take: [note], within: 24h}}\n"
    shop = Shop(lake, spark, steps=longer)
    shop.lands("payments", 9)
    shop.lands("orders", 1)
    orders, begun = shop.pipeline("orders"), utc_now()

    def set_clock(hours: float) -> datetime:
        shop.time = begun + timedelta(hours=hours)
        return shop.time

    assert waiting.due(orders, set_clock(0.9)) is None
    set_clock(1.1)
    assert shop.run("orders") == ["0 rows", "1 still bad"]
    for hours in (1.1, 2, 23):
        assert waiting.due(orders, set_clock(hours)) is None
        assert shop.run("orders") == []
    end_of_wait = set_clock(24.1)
    shop.run("orders")
    assert shop.rows() == [(1, None)]
    assert waiting.due(orders, end_of_wait) is None


@pytest.mark.long
@pytest.mark.parametrize("write", ["upsert, keys: [id]", "history, keys: [id]", "accumulate"])
def test_rows_that_wait_land_by_each_write_mode(write: str, lake: Path, spark: Any) -> None:
    steps = "  - aggregate: {{by: [id], measures: {{amount: sum(amount)}}}}\n" if write == "accumulate" else ""
    shop = Shop(lake, spark, write=write, steps=steps)
    shop.lands("payments", 1)
    shop.lands("orders", 1)
    shop.lands("orders", 2)
    shop.lands("orders", 2)
    assert shop.rows() == [(1, 10)]
    shop.lands("payments", 2)
    for _ in range(2):
        shop.run("orders")

    landed = {"accumulate": [(1, 10), (2, 40)], "upsert, keys: [id]": [(1, 10), (2, 20)]}
    assert shop.rows() == landed.get(write, [(1, 10), (2, 20), (2, 20)])
    assert {state for _, state in shop.rows(bad=True)} == {"replayed"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("missing", "landed", "bad"),
    [("keep", [(1, None)], ("waits", "replayed")), ("drop", [], ("waits", "replayed")), ("quarantine", [], ("no_match", "open"))],
)
def test_after_its_time_it_goes_by_missing(missing: str, landed: list[Any], bad: tuple[str, str], lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark, missing)
    shop.lands("payments", 9)
    shop.lands("orders", 1)
    assert shop.rows() == []
    shop.time = utc_now() + timedelta(seconds=3601)

    shop.run("orders")

    assert shop.rows() == landed
    assert shop.rows(bad=True) == [bad]
    assert shop.run("orders") == []
    shop.lands("payments", 1)
    shop.run("orders")
    assert shop.rows() == landed  # it came too late


def test_an_old_message_does_not_wait(lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark)
    shop.lands("payments", 9)

    assert shop.lands("orders", 1, ago=7200) == ["1 row"]
    assert shop.rows() == [(1, None)]


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_each_lands_once_wherever_a_run_dies(point: str, lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark)
    shop.lands("payments", 1)
    for id_ in (1, 2, 3):
        shop.lands("orders", id_)
    shop.lands("payments", 2)
    shop.run("orders", dies=point)
    shop.lands("payments", 3)
    shop.run("orders", dies=point)
    shop.run("orders")
    shop.run("orders")

    assert shop.rows() == [(1, 10), (2, 20), (3, 30)]
    assert Counter(shop.rows(bad=True)) == {("waits", "replayed"): 2}
