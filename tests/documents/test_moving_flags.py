"""Rules whose bounds move, against plain Python: over batches of random rows, also of runs that died on the way."""

from __future__ import annotations

import json
import math
import statistics
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.publish.batch import next_batch
from framework.core.rows import moments
from framework.core.rows.pins import Measured
from framework.core.rules import protocol
from framework.operations.trials.given_messages import GivenMessages
from framework.operations.trials.preview import preview
from framework.plan import Message, Pipeline, Plan
from tests.support.kill_points import Died
from tests.support.memory_messages import append
from tests.support.project import plan_for
from tests.support.selection import EXAMPLES, few, searched

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: trades
value: json
event_time: at
columns: {{id: int, symbol: string, price: {type}, at: {{type: timestamp, format: epoch_millis}}}}
---
pipeline: trades
from: {{topic: trades}}
steps:
{steps}  - flag:
      into: flag
      rules:
        - {{when: price > 900, label: LARGE}}
        - {{beyond: {{column: price, per: [symbol], deviations: 1.5, over: 1h, at_least: 3}}, label: UNUSUAL}}
        - {{beyond: {{column: price, quantiles: [0.25, 0.75], rows: 4, at_least: 2}}, label: RARE}}
      otherwise: NORMAL
into: {{table: {namespace}.trades, write: {write}}}
"""
MOMENT = datetime(2026, 1, 1, tzinfo=timezone.utc)
Trade = tuple[str | None, float | None, int]  # a symbol, a price and minutes
trades = st.tuples(st.sampled_from(["A", "B", None]), st.sampled_from([None, 1, 2, 3, 4, 50, 901]), st.integers(0, 180))
batches = st.lists(
    st.tuples(st.lists(trades, min_size=1, max_size=8), st.sampled_from(["", "", "staged", "checked"])), min_size=2, max_size=5
)


class Trades:
    def __init__(self, lake: Path, spark: Any, type_: str = "double", write: str = "append", steps: str = "") -> None:
        self.spark = spark
        text = SPEC.format(namespace=f"n{uuid.uuid4().hex[:10]}", type=type_, write=write, steps=steps)
        self.plan: Plan = plan_for(lake, "127.0.0.1:1", text)
        self.sent: list[Message] = []

    @property
    def pipeline(self) -> Pipeline:
        pipeline = self.plan.pipeline("trades")
        assert pipeline is not None
        return pipeline

    def lands(self, batch: Sequence[tuple[str | None, Any, int]], dies: str = "") -> None:
        number = (self.sent[-1].batch if self.sent else 0) + 1
        for symbol, price, minutes in batch:
            value = {"id": len(self.sent), "symbol": symbol, "price": price, "at": minutes * 60_000}
            append(self.sent, "trades", json.dumps(value).encode(), at=MOMENT, batch=number)

        def die(reached: str) -> None:
            if reached == dies:
                raise Died

        source = GivenMessages(tuple(self.sent), number, 1)
        with suppress(Died):
            next_batch(Context(self.plan, spark=lambda: self.spark, source=source, reached=die), self.pipeline)
        if dies:
            next_batch(Context(self.plan, spark=lambda: self.spark, source=source), self.pipeline)

    @property
    def flags(self) -> dict[int, str]:
        table = table_state.table(self.pipeline.table.catalog, self.pipeline.table.identifier)
        assert table is not None
        return {row["id"]: row["flag"] for row in table.scan().to_arrow().to_pylist()}


def modelled(sent_batches: Sequence[tuple[list[Trade], str]]) -> dict[int, str]:
    earlier: list[tuple[int, Trade]] = []
    flags: dict[int, str] = {}
    for batch, _ in sent_batches:
        newest_time = max((minutes for _, (_, _, minutes) in earlier), default=0)
        by_symbol: dict[str | None, list[float]] = defaultdict(list)
        for _, (symbol, price, minutes) in earlier:
            if price is not None and minutes * 60 >= (newest_time - 60) * 60 // 150 * 150:  # a 24th of the hour
                by_symbol[symbol].append(price)
        with_price = sorted((trade for trade in earlier if trade[1][1] is not None), key=lambda trade: (-trade[1][2], -trade[0]))
        last_prices = sorted(price for _, (_, price, _) in with_price[:4] if price is not None)
        start = len(earlier)
        for number, (symbol, price, _) in enumerate(batch, start):
            flags[number] = _label(price, by_symbol[symbol], last_prices)
        earlier += list(enumerate(batch, start))
    return flags


def _label(price: float | None, known_prices: Sequence[float], last_prices: Sequence[float]) -> str:
    if price is None:
        return "NORMAL"
    if price > 900:
        return "LARGE"
    if len(known_prices) >= 3:
        mean, deviation = statistics.fmean(known_prices), statistics.stdev(known_prices)
        if abs(price - mean) > 1.5 * deviation and not math.isclose(abs(price - mean), 1.5 * deviation):
            return "UNUSUAL"
    if len(last_prices) >= 2 and not _quantile(last_prices, 0.25) <= price <= _quantile(last_prices, 0.75):
        return "RARE"
    return "NORMAL"


def _quantile(values: Sequence[float], quantile: float) -> float:
    position = quantile * (len(values) - 1)
    low = values[math.floor(position)]
    return low + (values[math.ceil(position)] - low) * (position - math.floor(position))


@pytest.mark.parametrize("examples", few([1, 2 * EXAMPLES], 1))
def test_as_the_model_says(examples: int, lake: Path, spark: Any) -> None:
    @searched(examples)
    @given(batches)
    def same(sent_batches: Sequence[tuple[list[Trade], str]]) -> None:
        tables = Trades(lake, spark)
        for batch, dies in sent_batches:
            tables.lands(batch, dies)
        assert tables.flags == modelled(sent_batches)

    same()


def test_bounds_of_the_snapshot_that_is_recorded(lake: Path, spark: Any) -> None:
    tables = Trades(lake, spark, "'decimal(10,2)'")
    tables.lands([("A", price, 0) for price in (1, 2, 3)])
    first_table = metadata.read(tables.pipeline.table.catalog, tables.pipeline.table.identifier)
    assert first_table is not None and first_table.main is not None
    tables.lands([("A", 9, 0), ("B", 9, 0), ("A", 901, 0)])

    assert [tables.flags[number] for number in range(3, 6)] == ["UNUSUAL", "RARE", "LARGE"]
    current_table = metadata.read(tables.pipeline.table.catalog, tables.pipeline.table.identifier)
    assert current_table is not None
    recorded = json.loads(metadata.summary(current_table.main)[protocol.JOINED])
    assert recorded == {tables.pipeline.table.identifier: first_table.main["snapshot-id"]}


def test_a_constant_price_is_not_beyond(lake: Path, spark: Any) -> None:
    tables = Trades(lake, spark)
    for _ in range(3):
        tables.lands([("A", price, 0) for price in (0.1, 0.1, 0.1, 0.1)])

    assert set(tables.flags.values()) == {"NORMAL"}


@pytest.mark.long
def test_a_value_without_end_is_not_measured(lake: Path, spark: Any) -> None:
    """An infinite price counts neither where all rows are read, nor where only new rows are."""
    tables = Trades(lake, spark, "string", steps="  - cast: {price: double}\n")
    for _ in range(3):
        tables.lands([("A", price, 0) for price in ("2", "3", "Infinity", "2", "-Infinity", "3")])
    tables.lands([("A", "3", 0), ("A", "60", 0)])
    moments._CACHE.clear()
    tables.lands([("A", "3", 0), ("A", "60", 0)])

    assert [tables.flags[number] for number in range(18, 22)] == ["NORMAL", "UNUSUAL"] * 2


def test_the_newest_time_is_known_of_a_table_with_more_columns_than_iceberg_keeps_bounds_of(lake: Path, spark: Any) -> None:
    trades = Trades(lake, spark, type_=", ".join(["double", *(f"c{number}: int" for number in range(120))]))
    trades.lands([("A", price, 0) for price in (1, 2, 1, 2)])
    trades.lands([("A", 50, 10)])
    assert trades.flags[4] == "UNUSUAL"


def test_rows_that_came_since_are_counted_alone(lake: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = Trades(lake, spark)
    read: list[tuple[str, int]] = []
    values, add = moments.values, moments._add

    def all_rows(*arguments: Any) -> Any:
        frame = values(*arguments)
        read.append(("all", frame.count()))
        return frame

    def added_rows(rows: Any, *arguments: Any) -> None:
        table = rows.read_all()
        read.append(("added", len(table)))
        add(table, *arguments)

    for name, counted in (("values", all_rows), ("_add", added_rows)):
        monkeypatch.setattr(moments, name, counted)  # nothing else says how many rows are read
    for minutes in range(4):
        tables.lands([("A", price, minutes) for price in (1, 2, 3)])
    assert read == [("all", 3), ("added", 3), ("added", 3)]
    tables.spark.sql(
        f"CALL `{tables.pipeline.table.catalog.name}`.system.rewrite_data_files(table => '{tables.pipeline.table.identifier}', "
        "options => map('rewrite-all', 'true'))"
    )
    tables.lands([("A", 9, 4)])
    assert read[3:] == [("added", 3)]
    assert tables.flags[12] == "UNUSUAL"
    name = f"`{tables.pipeline.table.catalog.name}`.{tables.pipeline.table.identifier}"
    tables.spark.sql(f"DELETE FROM {name} WHERE id < 6")
    tables.lands([("A", 9, 4)])
    assert read[4:] == [("all", 7)]  # the rows that are left


def test_a_preview_measures_on_the_table(lake: Path, spark: Any) -> None:
    tables = Trades(lake, spark)
    tables.lands([("A", price, 0) for price in (1, 2, 3)])
    value = json.dumps({"id": 9, "symbol": "A", "price": 9, "at": 0}).encode()
    sent = (
        *tables.sent,
        Message(batch=2, topic="trades", partition=0, offset=len(tables.sent), timestamp=MOMENT + timedelta(1), value=value),
    )

    context = Context(tables.plan, spark=lambda: spark, source=GivenMessages(sent, 2, 1))
    (message,) = preview(context, tables.pipeline, 5).messages

    assert message.rows[0].after[-1]["flag"] == "UNUSUAL"


@pytest.mark.parametrize("rows", [0, 1])
def test_a_store_that_does_not_answer_any_more_leaves_it_to_spark(tmp_path: Path, rows: int) -> None:
    """The failure comes before the first row, or between two rows."""
    plan = plan_for(tmp_path, "127.0.0.1:1", SPEC.format(namespace="n", type="double", write="append", steps=""))
    (pipeline,) = plan.pipelines
    bounds = next(bound for bound in pipeline.bounds if bound.over)
    measured = Measured(bounds, snapshot=2, newest_time=1_000_000, since=frozenset())
    cached = moments._CachedCounts(1, pa.table({"_sluice_per0": ["A"], "part": [0], "n": [1], "mean": [1.0], "squares": [0.0]}))
    moments._CACHE[moments._key(bounds, pipeline)] = cached

    def batches() -> Iterator[pa.RecordBatch]:
        yield from [pa.record_batch({"symbol": ["A"], "price": [1.0], "at": [datetime(2026, 1, 5)]})] * rows
        raise OSError("no answer")

    schema = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("at", pa.timestamp("us"))])
    moments.add(measured, pipeline, lambda: pa.RecordBatchReader.from_batches(schema, batches()))
    assert moments._cached_counts(measured, pipeline) is cached
    moments._CACHE.clear()
