"""Totals against a model in plain Python: random rows in random partitions and batches, with runs that die on the way, a second writer,
commits of others and maintenance in between."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyspark.sql import SparkSession

from framework.base.errors import BatchError
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.publish.batch import next_batch
from framework.operations.trials.given_messages import GivenMessages
from framework.operations.trials.trial import Trials
from framework.plan import Message, Pipeline, Plan, compare
from tests.support.accumulations import KILLED, Order, orders
from tests.support.kill_points import POINTS, Died
from tests.support.memory_messages import append
from tests.support.project import Project, plan_for
from tests.support.selection import EXAMPLES, few, searched
from tests.support.troubles import Trouble, trouble, with_trouble
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: trades
value: json
event_time: at
columns: {{symbol: string, quantity: bigint, price: "decimal(10,2)", user: string, at: {{type: timestamp, format: epoch_millis}}}}
---
pipeline: totals
from: {{topic: trades}}
steps:
  - aggregate:
      by: [symbol]
      window: {window}
      measures:
        total: sum(price * quantity)
        quantities: sum(quantity)
        trades: count(*)
        priced: count(price)
        large: count_if(quantity > 5)
        mean: avg(price)
        mean_quantity: avg(quantity)
        low: min(price)
        high: max(user)
        opened: first(price)
        closed: last(user)
        users: count(distinct user)
        about: approx_count_distinct(user)
into: {{table: {namespace}.totals, write: accumulate, format_version: {version}, partition_by: {partition_by}, late_after: 20s}}
expect:
  - {{name: no_w, when: "user <> 'w' or user is null"}}
  - {{when: quantity > 100, else: warn}}
maintain: {{keep_at_least: 1}}
"""
EVERY = 10  # seconds


@dataclass(frozen=True)
class Trade:
    symbol: str | None
    quantity: int | None
    price: str | None
    user: str | None
    time: int | None
    partition: int


trades = st.builds(
    Trade, st.sampled_from(["A", "B", "é'", None]), st.integers(-3, 9) | st.none(), st.sampled_from(["0.01", "12345678.90", "-7.55", None]),
    st.sampled_from(["u", "v", "", "w", None]), st.integers(0, 60) | st.none(), st.integers(0, 2),
)  # fmt: skip
batches = st.lists(st.tuples(st.lists(trades, min_size=1, max_size=8), st.none() | trouble), min_size=2, max_size=4)
History = Sequence[tuple[list[Trade], Trouble | None]]


def as_messages(history: History) -> tuple[Message, ...]:
    offsets, messages, moment = [0, 0, 0], [], datetime(2026, 1, 1, tzinfo=timezone.utc)
    for number, (batch, _) in enumerate(history, 1):
        for trade in batch:
            milliseconds = None if trade.time is None else trade.time * 1000
            price = None if trade.price is None else f"<{trade.price}>"
            value = {"symbol": trade.symbol, "quantity": trade.quantity, "price": price, "user": trade.user, "at": milliseconds}
            text = json.dumps(value).replace('"<', "").replace('>"', "")
            messages.append(
                Message(
                    batch=number,
                    topic="trades",
                    partition=trade.partition,
                    offset=offsets[trade.partition],
                    timestamp=moment,
                    value=text.encode(),
                )
            )
            offsets[trade.partition] += 1
    return tuple(messages)


def modelled(history: History, size: int) -> Mapping[Any, Mapping[str, Any]]:
    """The totals by symbol and window."""
    groups: dict[Any, list[tuple[Any, Trade]]] = defaultdict(list)
    latest_time, offsets = 0, [0, 0, 0]
    for batch, _ in history:
        times = [0]
        for trade in batch:
            offset = offsets[trade.partition]
            offsets[trade.partition] += 1
            if trade.time is None or (latest_time and trade.time < latest_time - 20) or trade.user == "w":
                continue  # a bad row
            times.append(trade.time)
            last_start = trade.time // EVERY * EVERY
            for start in range(last_start, trade.time - size, -EVERY):
                groups[trade.symbol, start].append(((trade.time, trade.partition, offset), trade))
        latest_time = max(latest_time, *times)
    return {key: totals([trade for _, trade in sorted(rows, key=lambda row: row[0])]) for key, rows in groups.items()}


def totals(rows: list[Trade]) -> dict[str, Any]:
    def without_nulls(values: Sequence[Any]) -> list[Any]:
        return [value for value in values if value is not None]

    quantities = without_nulls([trade.quantity for trade in rows])
    prices = [None if trade.price is None else Decimal(trade.price) for trade in rows]
    users = without_nulls([trade.user for trade in rows])
    products = without_nulls(
        [
            None if price is None or trade.quantity is None else price * trade.quantity
            for price, trade in zip(prices, rows, strict=True)
        ]
    )
    present_prices = without_nulls(prices)
    mean = (sum(present_prices) / len(present_prices)).quantize(Decimal("0.000001"), ROUND_HALF_UP) if present_prices else None
    return {
        "total": sum(products) if products else None, "quantities": sum(quantities) if quantities else None, "trades": len(rows),
        "priced": len(present_prices), "large": sum(quantity > 5 for quantity in quantities), "mean": mean,
        "mean_quantity": sum(quantities) / len(quantities) if quantities else None, "low": min(present_prices, default=None),
        "high": max(users, default=None), "opened": prices[0], "closed": rows[-1].user, "users": len(set(users)), "about": len(set(users)),
    }  # fmt: skip


def read(pipeline: Pipeline) -> Mapping[Any, Mapping[str, Any]]:
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    rows = table.scan(selected_fields=tuple(column.name for column in pipeline.table.readable)).to_arrow().to_pylist()
    by_key = {}
    for row in rows:
        start = int(row.pop("window_start").timestamp())
        row.pop("window_end")
        assert (row["symbol"], start) not in by_key
        by_key[row.pop("symbol"), start] = row
    return by_key


def as_modelled(plan: Plan, history: History, size: int, spark: Any) -> int:
    """Compares the table with the model after each batch, and returns how often there was trouble."""
    messages, (pipeline,), trouble_count = as_messages(history), plan.pipelines, 0
    for number, (_, case_trouble) in enumerate(history, 1):
        context = Context(plan, spark=lambda: spark, source=GivenMessages(messages, number, 2))
        troubles = [case_trouble] if case_trouble else []
        with suppress(Died):
            next_batch(with_trouble(context, troubles, number), pipeline)
        trouble_count += case_trouble is not None and not troubles
        next_batch(context, pipeline)
        assert read(pipeline) == modelled(history[:number], size)
        assert next_batch(context, pipeline) is None
    return trouble_count


TABLES = [(10, 3, "[]"), (25, 3, "[day(window_start)]"), (10, 2, '["truncate(1, symbol)"]')]


def planned(lake: Path, size: int, version: int, partition_by: str) -> Plan:
    window = f"{{column: at, every: {EVERY}s, size: {size}s}}"
    namespace = f"n{uuid.uuid4().hex[:10]}"
    return plan_for(
        lake, "127.0.0.1:1", SPEC.format(namespace=namespace, window=window, version=version, partition_by=partition_by)
    )


@pytest.mark.parametrize(
    ("size", "version", "partition_by", "examples"),
    few([(*TABLES[1], 1), *((*table, EXAMPLES) for table in TABLES)], (*TABLES[1], 1)),
)
def test_as_the_model_says(size: int, version: int, partition_by: str, examples: int, lake: Path, spark: Any) -> None:
    @searched(examples)
    @given(batches)
    def same(history: History) -> None:
        as_modelled(planned(lake, size, version, partition_by), history, size, spark)

    same()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dies", "another", "maintains"])
def test_trouble_at_any_point_changes_no_total(kind: str, lake: Path, spark: Any) -> None:
    """A run dies at the point, or another run does the batch meanwhile; each batch changes old groups, adds new ones and has late rows."""
    history: list[tuple[list[Trade], Trouble | None]] = []
    points = [point for point in POINTS if point not in ("staged_state",)]
    for index, point in enumerate(points):
        event_time = 10 * index
        rows = [
            Trade("A", index, "1.10", f"u{index}", event_time, 0),
            Trade(None, 1, None, "u", event_time + 3, 1),
            Trade("A", 2, "0.10", "v", event_time - 5, 2),
        ]
        history.append(([*rows, Trade("B", 1, "5.00", "x", max(0, event_time - 40), 0)], Trouble(kind, point)))
    assert as_modelled(planned(lake, 25, 3, "[]"), history, 25, spark) == len(points)


@pytest.mark.long
def test_a_time_without_a_zone_of_the_process(lake: Path, spark: Any) -> None:
    """Windows of a day begin at midnight in UTC; before 1970, too."""
    plan = planned(lake, 10, 3, "[]")
    (pipeline,) = plan.pipelines
    before = Trade("A", 1, "1.00", "u", -13, 0)
    messages = as_messages([([before], None)])
    next_batch(Context(plan, spark=lambda: spark, source=GivenMessages(messages, 1, 1)), pipeline)
    (((_, start), row),) = read(pipeline).items()
    assert datetime.fromtimestamp(start, timezone.utc) == datetime(1970, 1, 1, tzinfo=timezone.utc) - timedelta(seconds=20)
    assert row["trades"] == 1


LARGE = [("n", str(2**62)), ("d", "9" * 36 + ".50")]
BIG = """
topic: trades
value: json
columns: {{n: bigint, d: "decimal(38,2)"}}
---
pipeline: totals
from: {{topic: trades}}
steps:
  - aggregate: {{measures: {{total: sum({column})}}}}
into: {{table: {namespace}.totals, write: accumulate}}
"""


@pytest.mark.parametrize(
    ("column", "value", "together"),
    few([(*case, together) for case in LARGE for together in (True, False)], (*LARGE[0], True), (*LARGE[1], False)),
)
def test_a_sum_that_does_not_fit_is_refused(column: str, value: str, together: bool, lake: Path, spark: Any) -> None:
    """The sum overflows within a batch, or together with the table's rows."""
    plan = plan_for(lake, "127.0.0.1:1", BIG.format(column=column, namespace=f"n{uuid.uuid4().hex[:10]}"))
    (pipeline,) = plan.pipelines
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    messages = [
        Message(
            batch=1 if together else index + 1,
            topic="trades",
            partition=0,
            offset=index,
            timestamp=moment,
            value=f'{{"{column}": {value}}}'.encode(),
        )
        for index in range(4)
    ]
    with pytest.raises(BatchError, match="total-too-large") as error:
        for number in range(1, 5):
            next_batch(Context(plan, spark=lambda: spark, source=GivenMessages(tuple(messages), number, 1)), pipeline)
    assert "total = sum" in error.value.message
    assert "cast" in error.value.hint


ESCAPED = r"""
topic: prices
value: json
columns: {country: string, amount: int}
---
pipeline: escaped
from: {topic: prices}
steps: [aggregate: {by: [country], measures: {"a\\nb": avg(amount), "c\\": count(*)}}]
into: {table: totals.escaped, write: accumulate}
tests:
  - name: two batches
    given: [{country: DE, amount: 1}, new_batch, {country: DE, amount: 3}]
    expect: [{country: DE, "a\\nb": 2.0, "c\\": 2}]
"""


@pytest.mark.long
def test_the_names_of_measures_are_quoted(lake: Path, spark: SparkSession) -> None:
    plan = plan_for(lake, "127.0.0.1:1", ESCAPED)
    pipeline = plan.pipeline("escaped")
    assert pipeline is not None
    (example,) = pipeline.examples
    outcome = Trials(spark, plan).run(pipeline, example)
    assert outcome.error is None
    assert compare.differences(example, pipeline.table.columns, outcome.rows, outcome.bad) == ()


CHANGING = """
topic: orders
value: json
key: {{format: long, as: id}}
columns: {{country: string, amount: int, at: timestamp}}
---
pipeline: newest
from: {{topic: orders}}
into: {{table: {namespace}.newest, write: upsert, keys: [id], deletes: tombstones, format_version: {version}}}
---
pipeline: totals
from: {{table: {namespace}.newest}}
steps:
  - filter: amount <> 13
  - aggregate:
      by: [country]
      measures: {{total: sum(amount), orders: count(*), low: min(amount), closed: last(amount), mean: avg(amount), ids: count(distinct id)}}
into: {{table: {namespace}.totals, write: accumulate}}
---
pipeline: sums
from: {{table: {namespace}.newest}}
steps:
  - filter: amount <> 13
  - aggregate:
      by: [country]
      measures: {{total: sum(amount), orders: count(*), priced: count(amount), small: count_if(amount < 3), mean: avg(amount)}}
into: {{table: {namespace}.sums, write: accumulate}}
"""


@pytest.mark.parametrize(("version", "examples"), few([(3, 1), (3, EXAMPLES), (2, EXAMPLES)], (3, 1)))
def test_totals_of_rows_that_change(version: int, examples: int, lake: Path, spark: Any) -> None:
    @searched(examples)
    @given(st.lists(st.tuples(st.lists(orders, min_size=1, max_size=6), st.booleans()), min_size=2, max_size=5))
    def same(batches: Sequence[tuple[list[Order], bool]]) -> None:
        follows(batches, version, lake, spark)

    same()


def by_country(pipeline: Pipeline) -> Mapping[str | None, Mapping[str, Any]]:
    rows = rows_of(pipeline)
    by_key = {row["country"]: row for row in rows}
    assert len(by_key) == len(rows)
    return by_key


def follows(batches: Sequence[tuple[list[Order], bool]], version: int, lake: Path, spark: Any) -> None:
    plan = plan_for(lake, "127.0.0.1:1", CHANGING.format(namespace=f"n{uuid.uuid4().hex[:10]}", version=version))
    newest_rows, totals_, sums = (plan.pipeline(name) for name in ("newest", "totals", "sums"))
    assert newest_rows and totals_ and sums
    assert sums.table.totals and sums.table.totals.takes_off
    assert totals_.table.totals and not totals_.table.totals.takes_off
    moment, messages = datetime(2026, 1, 1, tzinfo=timezone.utc), list[Message]()
    rows: dict[int, tuple[str | None, int]] = {}
    for number, (batch, reads_totals) in enumerate(batches, 1):
        for id_, country, amount in batch:
            text = (
                None
                if amount is None
                else json.dumps({"country": country, "amount": amount, "at": "2026-01-05T10:00:00Z"}).encode()
            )
            append(messages, "orders", text, at=moment, key=id_.to_bytes(8, "big"), batch=number)
            rows.pop(id_, None)
            if amount is not None:
                rows[id_] = (country, amount)
        next_batch(Context(plan, spark=lambda: spark, source=GivenMessages(tuple(messages), number, 1)), newest_rows)
        if reads_totals:
            for pipeline in (totals_, sums):
                next_batch(Context(plan, spark=lambda: spark), pipeline)
    context = Context(plan, spark=lambda: spark)
    for pipeline in (totals_, sums):
        next_batch(context, pipeline)
        assert next_batch(context, pipeline) is None
    groups: dict[str | None, list[int]] = defaultdict(list)
    for country, amount in rows.values():
        if amount != 13:
            groups[country].append(amount)
    by_key = by_country(sums)
    assert {country: (row["total"], row["orders"], row["small"], row["mean"]) for country, row in by_key.items()} == {
        country: (sum(amounts), len(amounts), sum(amount < 3 for amount in amounts), sum(amounts) / len(amounts))
        for country, amounts in groups.items()
    }
    by_key = by_country(totals_)
    assert {country: (row["total"], row["orders"], row["low"], row["mean"], row["ids"]) for country, row in by_key.items()} == {
        country: (sum(amounts), len(amounts), min(amounts), sum(amounts) / len(amounts), len(amounts))
        for country, amounts in groups.items()
    }
    assert all(by_key[country]["closed"] in amounts for country, amounts in groups.items())


DIGITS = """
topic: numbers
value: json
columns: {{kind: string, amount: "decimal(28,10)", fine: "decimal(38,18)", text: string, parts: array<int>, n: int, at: timestamp}}
event_time: at
---
pipeline: sums
from: {{topic: numbers}}
steps:
  - derive: {{x: cast(text as double)}}
  - aggregate:
      by: [kind]
      measures: {{total: sum(amount), mean: avg(amount), fine: sum(fine), different: count(distinct x)}}
into: {{table: {namespace}.sums, write: accumulate}}
---
pipeline: newest
from: {{topic: numbers}}
into: {{table: {namespace}.newest, write: upsert, keys: [n], order_by: at}}
---
pipeline: of_newest
from: {{table: {namespace}.newest}}
steps:
  - aggregate: {{by: [kind], measures: {{total: sum(amount), mean: avg(amount), fine: sum(fine)}}}}
into: {{table: {namespace}.of_newest, write: accumulate}}
---
pipeline: items
from: {{topic: numbers}}
steps:
  - explode: {{column: parts, into: part}}
  - aggregate: {{by: [kind], measures: {{opened: first(part), closed: last(part)}}}}
into: {{table: {namespace}.items, write: accumulate}}
"""


@pytest.mark.long
def test_no_digit_is_lost(lake: Path, spark: Any) -> None:
    """Spark gives the sum of two decimals of 38 digits fewer digits behind the point, and an average those of its division."""
    plan = plan_for(lake, "127.0.0.1:1", DIGITS.format(namespace=f"n{uuid.uuid4().hex[:10]}"))
    moment, messages = datetime(2026, 1, 1, tzinfo=timezone.utc), list[Message]()
    amounts = [
        Decimal(text)
        for text in ("1.0000000001", "-3.0000000007", "123456789012345678.0000000001", "0.0000000003", "-0.0000000001")
    ]
    texts, parts = ("NaN", "-0.0", "NaN", "0.0", "1"), [[3, 1, 2], [5], [], [9, 8], [4, 7]]
    for number, amount in enumerate(amounts, 1):
        value = {"kind": "a", "amount": "#", "fine": "#", "text": texts[number - 1], "parts": parts[number - 1], "n": number}
        text = json.dumps({**value, "at": "2026-01-05T10:00:00Z"}).replace('"#"', f"{amount:f}")
        append(messages, "numbers", text.encode(), at=moment, batch=1 + number // 3)
    for number in (1, 2):
        for name in ("sums", "newest", "of_newest", "items"):
            pipeline = plan.pipeline(name)
            assert pipeline
            source = (
                None
                if pipeline.read_tables
                else GivenMessages(tuple(message for message in messages if message.batch <= number), number, 1)
            )
            next_batch(Context(plan, spark=lambda: spark, source=source), pipeline)
    with localcontext() as precise:
        precise.prec = 60
        total = sum(amounts, Decimal())
        mean = (total / 5).quantize(Decimal("1e-14"), ROUND_HALF_UP)
    (row,) = rows_of(plan.pipeline("sums"))
    assert (row["total"], row["mean"], row["fine"], row["different"]) == (total, mean, total, 3)
    (row,) = rows_of(plan.pipeline("of_newest"))
    assert (row["total"], row["mean"], row["fine"]) == (total, mean, total)
    (row,) = rows_of(plan.pipeline("items"))
    assert (row["opened"], row["closed"]) == (3, 7)


def rows_of(pipeline: Pipeline | None) -> list[dict[str, Any]]:
    assert pipeline
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return rows


def test_other_steps_before_totals_of_a_changing_table_ask_for_a_rebuild(lake: Path) -> None:
    """The new steps would subtract other rows than the old steps added."""

    def words(text: str) -> list[str]:
        plan = plan_for(lake, "127.0.0.1:1", text.format(namespace="n", version=3))
        return [pipeline.table.words for name in ("totals", "sums") if (pipeline := plan.pipeline(name))]

    before, after = words(CHANGING), words(CHANGING.replace("amount <> 13", "amount <> 14"))
    assert not set(before) & set(after)
    assert words(CHANGING + "expect: [{{when: amount < 50}}]\n")[1] != before[1]
    assert words(CHANGING + "expect: [{{when: amount < 50, else: warn}}]\n") == before  # by which no row is a bad one
    topic_spec = SPEC.replace("  - aggregate:", "  - filter: quantity > {more}\n  - aggregate:")
    topic_plans = [
        plan_for(
            lake,
            "127.0.0.1:1",
            topic_spec.format(namespace="n", version=3, window="{column: at, every: 10s}", partition_by="[]", more=minimum),
        )
        for minimum in (1, 2)
    ]
    assert topic_plans[0].pipelines[0].table.words == topic_plans[1].pipelines[0].table.words


@pytest.mark.long
@pytest.mark.kafka
def test_totals_are_right_after_kills_at_any_point(project: Project) -> None:
    """Runs are killed one after the other; then other runs continue while one is stopped."""
    project.template = KILLED
    project.make_topic(3)
    project.send_good(30, bad_every=10)
    project.run()
    for point in POINTS:
        if point != "staged_state":
            project.send_good(31, bad_every=10)
            with victim(project, point, signal.SIGKILL) as process:
                process.wait(PATIENCE)
    for point in ("merged", "checked", "published"):
        project.send_good(5, bad_every=10)
        with victim(project, point, signal.SIGSTOP) as process:
            project.send_good(9, bad_every=10)
            project.run()
            os.kill(process.pid, signal.SIGCONT)
            process.communicate(timeout=PATIENCE)
    project.run()
    total = next(project.numbers)
    good_numbers = [number for number in range(total) if number % 10]
    by_key = {row["parity"]: (row["total"], row["trades"]) for row in project.rows()}
    assert by_key == {
        parity: (sum(group_numbers), len(group_numbers))
        for parity in range(3)
        if (group_numbers := [n for n in good_numbers if n % 3 == parity])
    }
    assert len(project.rows(bad=True)) == total - len(good_numbers)
    assert project.branches() == []
