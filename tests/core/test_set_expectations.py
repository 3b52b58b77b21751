"""Expectations of many rows, checked on the table as a batch would leave it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import SourceMissing, Unexpected
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.publish.batch import Batch, next_batch
from framework.host.assets import checks
from framework.host.assets.keys import AssetKeys
from framework.operations.metrics import in_words
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan
from tests.support.memory_messages import append
from tests.support.project import plan_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: orders
value: json
columns: {{id: int, customer: string, amount: int}}
---
topic: customers
value: json
columns: {{customer: string, gone: boolean}}
---
pipeline: customers
from: {{topic: customers}}
into: {{table: {namespace}.customers{customers}}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: {namespace}.orders, write: {write}, format_version: {version}}}
expect:
  - {{name: once, unique: [id]}}
  - {{name: known, column: customer, references: {{table: {namespace}.customers}}{known}}}
  - {{name: few, rows: [1, {most}], else: stop}}
  - {{name: positive, when: amount > 0, else: warn}}
  - {{name: short, column: customer, length: [1, 3]}}
"""
MOMENT = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Orders:
    def __init__(
        self,
        lake: Path,
        spark: Any,
        write: str = "append",
        version: int = 3,
        customers: str = "",
        known_options: str = "",
        max_rows: int = 4,
    ) -> None:
        self.spark = spark
        namespace = f"n{uuid.uuid4().hex[:10]}"
        text = SPEC.format(
            namespace=namespace, write=write, version=version, customers=customers, known=known_options, most=max_rows
        )
        self.plan: Plan = plan_for(lake, "127.0.0.1:1", text)
        self.sent: dict[str, list[Message]] = {"customers": [], "orders": []}

    def pipeline(self, name: str) -> Pipeline:
        pipeline = self.plan.pipeline(name)
        assert pipeline is not None
        return pipeline

    def lands(self, topic: str, *values: dict[str, Any]) -> Batch:
        messages = self.sent[topic]
        number = messages[-1].batch + 1 if messages else 1
        for value in values:
            append(messages, topic, json.dumps(value).encode(), at=MOMENT, batch=number)
        source = GivenMessages(tuple(messages), number, 1)
        batch = next_batch(Context(self.plan, spark=lambda: self.spark, source=source), self.pipeline(topic))
        assert batch is not None
        return batch


def order(id_: int, customer: str | None = "c-1", amount: int = 1) -> dict[str, Any]:
    return {"id": id_, "customer": customer, "amount": amount}


def warned(batch: Batch) -> Sequence[tuple[str, int, str]]:
    return [(warning.name, warning.rows, warning.sample) for warning in batch.warnings]


@pytest.mark.long
@pytest.mark.parametrize("version", [3, 2])
def test_rows_of_a_batch_beside_those_of_the_table(version: int, lake: Path, spark: Any) -> None:
    orders = Orders(lake, spark, version=version, max_rows=9)
    orders.lands("customers", {"customer": "c-1"})

    assert warned(orders.lands("orders", order(1), order(2, None))) == []
    batch = orders.lands("orders", order(1, "c-2"), order(3, "c-1", -1))

    assert warned(batch) == [
        ("positive", 1, "at partition 0 offset 3"),
        ("once", 2, "between partition 0 offset 0 and partition 0 offset 2"),
        ("known", 1, "at partition 0 offset 2"),
    ]
    assert "2 not as `once` expects" in list(in_words(batch))
    assert warned(orders.lands("orders", order(4))) == []  # problems of the table's own rows were reported before
    results = {
        result.check_name: result for result in checks.results(AssetKeys(), orders.pipeline("orders"), [batch], {"short: x": 0})
    }
    assert {name: result.passed for name, result in results.items()} == {
        "once": False, "known": False, "few": True, "positive": False, "short": True,
    }  # fmt: skip
    assert results["once"].metadata["where"].value == "between partition 0 offset 0 and partition 0 offset 2"


def test_a_table_that_is_not_there_yet_has_no_values(lake: Path, spark: Any) -> None:
    assert warned(Orders(lake, spark).lands("orders", order(1), order(2, None))) == [("known", 1, "at partition 0 offset 0")]
    with pytest.raises(SourceMissing):
        Orders(lake, spark, known_options=", else: stop").lands("orders", order(1))


@pytest.mark.long
def test_what_has_ended_is_no_value_of_a_history(lake: Path, spark: Any) -> None:
    orders = Orders(lake, spark, customers=", write: history, keys: [customer], deletes: {when: gone}")
    orders.lands("customers", {"customer": "c-1"}, {"customer": "c-2"})
    orders.lands("customers", {"customer": "c-2", "gone": True})

    assert warned(orders.lands("orders", order(1, "c-1"), order(2, "c-2"))) == [("known", 1, "at partition 0 offset 1")]


def test_too_many_rows_stop_the_batch(lake: Path, spark: Any) -> None:
    orders = Orders(lake, spark)
    orders.lands("customers", {"customer": "c-1"})
    orders.lands("orders", *(order(number) for number in range(4)))

    with pytest.raises(Unexpected) as stopped:
        orders.lands("orders", order(5))

    assert stopped.value.expectation == "few"
    assert "5 rows in the table, not as `few` expects" in stopped.value.message
    table = orders.pipeline("orders").table
    loaded_table = table_state.table(table.catalog, table.identifier)
    assert loaded_table is not None and loaded_table.scan().to_arrow().num_rows == 4
