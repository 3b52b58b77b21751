"""Rows that are looked up in another table, as it was when the batch began, whatever happens meanwhile."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import SourceMissing
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.publish.batch import next_batch
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan, in_order
from framework.plan.lineage import lineage
from tests.support.memory_messages import append
from tests.support.project import plan_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: customers
value: json
key: {{format: long, as: customer}}
columns: {{country: string, at: timestamp}}
event_time: at
---
topic: orders
value: json
columns: {{id: int, customer: int}}
---
pipeline: orders
from: {{topic: orders}}
steps:
  - join: {{table: {namespace}.customers, on: [customer], take: [country], missing: {missing}}}
  - derive: {{where: "concat('in ', country)"}}
into: {{table: {namespace}.orders}}
---
pipeline: customers
from: {{topic: customers}}
into: {{table: {namespace}.customers, write: {write}, keys: [customer]}}
"""


REPLACED = """
---
pipeline: replaced
from: {{table: {namespace}.orders}}
steps:
  - join: {{table: {namespace}.customers, on: [customer], take: [at]}}
into: {{table: {namespace}.replaced, write: replace}}
"""


class Shop:
    """Customers and orders, each message a batch of its own."""

    def __init__(self, lake: Path, spark: Any, missing: str = "keep", write: str = "upsert", documents: str = "") -> None:
        self.spark = spark
        self.text = (SPEC + documents).format(namespace=f"n{uuid.uuid4().hex[:10]}", missing=missing, write=write)
        self.plan: Plan = plan_for(lake, "127.0.0.1:1", self.text)
        self.sent: dict[str, list[Message]] = {"customers": [], "orders": []}

    def pipeline(self, name: str) -> Pipeline:
        pipeline = self.plan.pipeline(name)
        assert pipeline is not None
        return pipeline

    def lands(self, topic: str, value: dict[str, Any], key: int = 0, on_point: Any = None) -> None:
        sent, moment = self.sent[topic], datetime(2026, 1, 1, tzinfo=timezone.utc)
        text = json.dumps(value).encode()
        append(sent, topic, text, at=moment, key=key.to_bytes(8, "big"))
        context = Context(
            self.plan,
            spark=lambda: self.spark,
            source=GivenMessages(tuple(sent), len(sent), 1),
            reached=on_point or (lambda _: None),
        )
        next_batch(context, self.pipeline(topic))

    def customer(self, key: int, country: str, day: int = 1) -> None:
        self.lands("customers", {"country": country, "at": f"2026-01-{day:02}T00:00:00Z"}, key)

    @property
    def rows(self) -> dict[int, Any]:
        table = self.pipeline("orders").table
        orders_table = table_state.table(table.catalog, table.identifier)
        assert orders_table is not None
        return {row["id"]: (row["country"], row["where"]) for row in orders_table.scan().to_arrow().to_pylist()}


def test_as_it_was_when_the_batch_began(lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark)
    shop.customer(1, "DE")
    customers = metadata.read(shop.pipeline("customers").table.catalog, shop.pipeline("customers").table.identifier)
    assert customers is not None and customers.main is not None

    def moves(point: str) -> None:
        if point == "ranged":
            shop.customer(1, "FR", 2)

    shop.lands("orders", {"id": 1, "customer": 1}, on_point=moves)
    shop.lands("orders", {"id": 2, "customer": 1})
    shop.lands("orders", {"id": 3, "customer": 9})
    shop.lands("orders", {"id": 4})
    assert shop.rows == {1: ("DE", "in DE"), 2: ("FR", "in FR"), 3: (None, None), 4: (None, None)}
    table = shop.pipeline("orders").table
    orders = metadata.read(table.catalog, table.identifier)
    assert orders is not None
    recorded = [
        summary["sluice.joined"]
        for snapshot in orders.snapshots.values()
        if "sluice.joined" in (summary := metadata.summary(snapshot))
    ]
    assert {shop.pipeline("customers").table.identifier: customers.main["snapshot-id"]} in [json.loads(text) for text in recorded]
    assert len(recorded) == 4


@pytest.mark.long
def test_a_replaced_table_follows_the_joined_one(lake: Path, spark: Any) -> None:
    """The next batch reads what came to the joined table during this one."""
    shop = Shop(lake, spark, documents=REPLACED)
    shop.customer(1, "DE")
    shop.lands("orders", {"id": 1, "customer": 1})
    replaced = shop.pipeline("replaced")

    def days(on_point: Any = lambda _: None) -> list[int] | None:
        if next_batch(Context(shop.plan, spark=lambda: spark, reached=on_point), replaced) is None:
            return None
        table = table_state.table(replaced.table.catalog, replaced.table.identifier)
        assert table is not None
        return [row["at"].day for row in table.scan().to_arrow().to_pylist()]

    assert (days(), days()) == ([1], None)
    shop.customer(1, "FR", 2)
    assert days(lambda point: shop.customer(1, "FR", 3) if point == "ranged" else None) == [2]
    assert (days(), days()) == ([3], None)
    customers = shop.pipeline("customers").table
    commits = len(shop.sent["customers"])
    spark.sql(f"DROP TABLE `{customers.catalog.name}`.{customers.identifier}")
    shop.sent["customers"].clear()
    for day in range(4, 4 + commits):  # so that the new table has as many commits
        shop.customer(1, "IT", day)
    assert (days(), days()) == ([3 + commits], None)


def test_a_column_that_the_source_does_not_have_yet_is_null(lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark, documents=REPLACED)
    shop.customer(1, "DE")
    shop.lands("orders", {"id": 1, "customer": 1})
    plan = plan_for(lake, "127.0.0.1:1", shop.text.replace("derive: {where:", "derive: {later: id + 1, where:"))
    replaced = plan.pipeline("replaced")
    assert replaced is not None

    batch = next_batch(Context(plan, spark=lambda: spark), replaced)

    table = table_state.table(replaced.table.catalog, replaced.table.identifier)
    assert batch and table is not None
    assert [(row["id"], row["later"]) for row in table.scan().to_arrow().to_pylist()] == [(1, None)]


@pytest.mark.long
@pytest.mark.parametrize(("missing", "bad"), [("drop", 0), ("quarantine", 1)])
def test_rows_without_a_match(missing: str, bad: int, lake: Path, spark: Any) -> None:
    """Rows of a history are looked up by the current version."""
    shop = Shop(lake, spark, missing, "history")
    shop.customer(1, "DE", 1)
    shop.customer(1, "FR", 2)
    shop.lands("orders", {"id": 1, "customer": 1})
    shop.lands("orders", {"id": 2, "customer": 2})
    assert shop.rows == {1: ("FR", "in FR")}
    table = shop.pipeline("orders").table
    bad_rows_table = table_state.table(table.catalog, table.bad_rows)
    rows = bad_rows_table.scan().to_arrow().to_pylist() if bad_rows_table else []
    assert [row["code"] for row in rows] == ["no_match"] * bad


def test_a_table_that_is_not_there_yet(lake: Path, spark: Any) -> None:
    shop = Shop(lake, spark)
    with pytest.raises(SourceMissing, match="in which orders looks rows up, does not exist yet") as missing:
        shop.lands("orders", {"id": 1, "customer": 1})
    assert missing.value.hint == "run `customers`, which writes it, first"
    assert [pipeline.name for pipeline in in_order(shop.plan.pipelines)] == ["customers", "orders"]
    sources = lineage(shop.pipeline("orders"))
    assert sources["country"] == sources["where"] == {f"{shop.pipeline('customers').table.identifier}.country"}
