"""Plans of totals: the origins of their columns, the columns of readers and topics, and the columns that identify a person."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import RefusedError, SluiceError
from framework.core.context.context import Context
from framework.operations.forget import keys
from framework.operations.undo import rewind
from framework.plan import Pipeline, Plan, TableChanges
from framework.plan.lineage import lineage
from tests.support.project import plan_for

SPEC = """
topic: trades
value: json
columns: {symbol: string, quantity: int, price: double, user: string, at: timestamp}
event_time: at
---
pipeline: totals
from: {topic: trades}
steps:
  - derive: {product: price * quantity}
  - aggregate:
      by: [symbol]
      window: {column: at, every: 1m}
      measures: {total: sum(product), trades: count(*), mean: avg(price), users: count(distinct user)}
into: {table: markets.totals, write: accumulate}
also: [{topic: totals_onward}]
---
pipeline: largest
from: {table: markets.totals}
steps: [filter: total > 1000]
into: {table: markets.largest, write: upsert, keys: [symbol, window_start]}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_for(tmp_path, "127.0.0.1:1", SPEC)


def named(plan: Plan, name: str) -> Pipeline:
    pipeline = plan.pipeline(name)
    assert pipeline is not None
    return pipeline


def test_where_columns_come_from(plan: Plan) -> None:
    assert lineage(named(plan, "totals")) == {
        "symbol": {"symbol"},
        "window_start": {"at"},
        "window_end": {"at"},
        "total": {"price", "quantity"},
        "trades": frozenset(),
        "mean": {"price"},
        "users": {"user"},
        "_measures": {"price", "quantity", "user"},
    }


def test_what_measures_are_computed_from_is_for_nobody(plan: Plan) -> None:
    totals, largest = named(plan, "totals"), named(plan, "largest")
    assert "_measures" in [column.name for column in totals.table.columns]
    names = ["symbol", "window_start", "window_end", "total", "trades", "mean", "users"]
    assert [column.name for column in totals.table.readable] == names
    assert isinstance(largest.source, TableChanges)
    assert [column.name for column in largest.source.columns] == names
    assert largest.source.rows_change
    (onward,) = totals.also
    assert [column.name for column in onward.options.keys] == ["symbol", "window_start"]


def test_a_person_is_found_by_groups_alone(plan: Plan) -> None:
    context: Any = None
    with pytest.raises(SluiceError, match=r"a row of markets\.totals is of many persons") as error:
        keys.read_key(context, named(plan, "totals"), {"total": "1"})
    assert error.value.hint == "give `--key` for symbol"


def test_messages_are_not_added_a_second_time(plan: Plan) -> None:
    with pytest.raises(RefusedError, match="each message that is read again would be added a second time"):
        rewind.judged(
            Context(plan, spark=lambda: pytest.fail("no Spark is needed")),
            named(plan, "totals"),
            datetime(2026, 1, 5, tzinfo=timezone.utc),
        )
