"""`sluice status --cost`: what tables keep of their batches by day, what is stored, and money by given prices."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from framework.core.rules import daily_work
from framework.core.rules.work import Work
from framework.host.cli import _cost
from framework.operations.observe import cost
from framework.operations.observe.cost import GETS_OF_A_BATCH, Money, TableCost, costs, prices_of, tableflow_cost
from framework.plan import Engine, Plan
from framework.systems.catalogs.sql import Sql
from tests.support.project import plan_for
from tests.support.shop import COPY, NOWHERE, catalog, made_by_hand, sluice, specs

TODAY = date(2026, 11, 30)
PRICES = """---
prices: eu
currency: EUR
storage_gb_month: 30
requests_1000: {put: 1, get: 0.5, catalog: 0.1}
core_hour: 2
as_of: 2026-11-01
"""
TABLEFLOW = "tableflow: {topic_hour: 0.1, processed_gb: 4, as_of: 2026-10-01}\n"
BATCH = Work(
    batches=10, read=500, read_bytes=1 << 29, files=20, bytes=1 << 20, objects=1000, seconds={"start": 600.0, "stage": 1200.0}
)
SECOND = "---\npipeline: more\nfrom: {topic: trades}\ninto: {table: shop.more, kafka_columns: false}\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # output is as wide as without a terminal


def made_plan(more: str = "") -> Plan:
    return plan_for(Path.cwd(), NOWHERE, specs("n: bigint; price: double") + more)


def worked(name: str, *days_ago: int, today: date = TODAY) -> None:
    """A table with a batch on each of these days."""
    made_by_hand('{"pipeline": "trades"}', name)
    properties: dict[str, str] = {}
    for number in days_ago:
        time = datetime(today.year, today.month, today.day, 12, tzinfo=timezone.utc) - timedelta(days=number)
        properties = daily_work.with_batch(properties, BATCH, time)
    with catalog().load_table(f"shop.{name}").transaction() as transaction:
        transaction.set_properties(properties)


def one(plan: Plan, days: int = 30) -> TableCost:
    (table,) = costs(plan, plan.pipelines[:1], days, TODAY)
    return table


def files() -> Iterator[Path]:
    return (path for path in Path("warehouse/shop").rglob("*") if path.is_file())


@pytest.mark.slow
def test_the_days_that_were_asked_for_count() -> None:
    worked("trades", 35, 29, 1, 0)
    plan = made_plan()
    assert [one(plan, days).done.batches for days in (1, 2, 29, 30, 40)] == [10, 20, 20, 30, 40]
    assert [one(plan, days).days for days in (1, 30, 40)] == [1, 30, 36]
    table = one(plan)
    assert (table.done.read, table.done.objects, table.gets) == (1500, 3000, 30 * GETS_OF_A_BATCH)
    assert table.money is None, "there are no prices"


@pytest.mark.slow
def test_all_files_of_a_table_and_its_bad_rows_are_stored() -> None:
    worked("trades", 0)
    worked("trades__bad_rows", 0)
    worked("other", 0)
    sizes = [path.stat().st_size for path in files() if "/other/" not in str(path)]
    stored = one(made_plan()).stored
    assert stored is not None and (stored.files, stored.bytes) == (len(sizes), sum(sizes))
    catalog().drop_table("shop.trades")
    assert one(made_plan()).stored is None, "there are bad rows, and no table"


@pytest.mark.slow
def test_days_of_a_wrong_clock_do_not_count() -> None:
    worked("trades", 10_000, -5, 0)
    assert (one(made_plan()).days, one(made_plan()).done.batches) == (1, 10)


@pytest.mark.slow
def test_money_is_made_of_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "cores", lambda engine: 2)  # whatever this machine has
    worked("trades", 14, 0)
    table = one(made_plan(more=PRICES))
    assert table.stored is not None and table.money is not None
    assert table.money.storage == pytest.approx(table.stored.bytes / (1 << 30) * 15), "half of a month, at 30 a month"
    assert table.money.requests == pytest.approx(2 + 20 * GETS_OF_A_BATCH / 1000 * 0.5)
    assert table.catalog_requests == 0, "its catalog is a file"
    monkeypatch.setattr(Sql, "batch_requests", 3)  # as if it were a server
    table = one(made_plan(more=PRICES))
    assert table.catalog_requests == 60 and table.money is not None and table.stored is not None
    assert table.money.requests == pytest.approx(2 + 20 * GETS_OF_A_BATCH / 1000 * 0.5 + 60 / 1000 * 0.1)
    assert table.money.processors == pytest.approx(1 * 2 * 2), "an hour of two cores"
    assert table.money.total == pytest.approx(table.money.storage + table.money.requests + table.money.processors)


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_a_topic_of_two_pipelines_counts_once_for_tableflow(reverse: bool) -> None:
    worked("trades", 9, 0)
    worked("more", 0)
    plan = made_plan(more=PRICES + TABLEFLOW + SECOND)
    tables = costs(plan, sorted(plan.pipelines, key=lambda pipeline: pipeline.name, reverse=reverse), 30, TODAY)
    prices = prices_of(plan)
    assert prices is not None and {table.pipeline.name for table in tables} == {"trades", "more"}
    tableflow = tableflow_cost(prices, tables)
    assert tableflow is not None and (tableflow.topics, tableflow.read_bytes) == (1, 1 << 30)
    assert tableflow.price == pytest.approx(10 * 24 * 0.1 + 4)
    assert tableflow_cost(prices_of(made_plan(more=PRICES)) or prices, tables) is None


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        (Engine(master="local[3]"), 3),
        (Engine(master="local[2,4]"), 2),
        (Engine(master="local[3, 4]"), 3),
        (Engine(master="local"), 1),
        (Engine(master="local[*]"), len(os.sched_getaffinity(0))),
        (Engine(master="spark://one:7077"), 1),
        (Engine(master="spark://one:7077", conf=(("spark.cores.max", "12"),)), 12),
        (Engine(master="spark://one:7077", conf=(("spark.executor.cores", "4g"),)), 1),
        (Engine(master="k8s://x", conf=(("spark.executor.cores", "4"), ("spark.executor.instances", "3"))), 12),
    ],
    ids=lambda value: getattr(value, "master", value),
)
def test_cores_are_those_of_the_engine(engine: Engine, count: int) -> None:
    assert cost.cores(engine) == count


@pytest.mark.slow
def test_the_command_says_what_tables_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    today = TODAY
    # A test at midnight would be of two days.
    monkeypatch.setattr(_cost, "utc_now", lambda: datetime(2026, 11, 30, 12, tzinfo=timezone.utc))
    worked("trades", 2, 0)
    made_plan(more=PRICES + TABLEFLOW + COPY)
    done = sluice("status", "--cost")
    lines = done.output.splitlines()
    assert done.exit_code == 0, done.output
    assert lines[0].split() == [
        "table",
        "stored",
        "files",
        "messages",
        "read",
        "written",
        "puts",
        "gets",
        "catalog",
        "batches",
        "seconds",
        "EUR",
    ]
    assert "–" in next(line for line in lines if line.startswith("shop.copy"))
    trades = next(line for line in lines if line.startswith("shop.trades"))
    assert "(3 days)" in trades and "1,000" in trades and "1.0 GiB" in trades and "3,600" in trades
    assert "EUR: storage " in done.output and "; prices of 2026-11-01" in done.output
    assert "11.20 EUR in Tableflow: 1 topic and 1.0 GiB of messages, without storage; prices of 2026-10-01" in done.output
    document = json.loads(sluice("status", "--cost", "--days", "1", "--json").output)
    (copy, trades_document) = document["tables"]
    assert (document["days"], document["to"], copy["stored_bytes"]) == (1, today.isoformat(), None)
    assert (trades_document["batches"], trades_document["puts"], trades_document["seconds"]) == (10, 1000, 1800.0)
    assert document["money"]["total"] == pytest.approx(trades_document["money"]["total"])
    assert document["tableflow"]["topics"] == 1 and document["prices"]["currency"] == "EUR"


@pytest.mark.slow
def test_without_prices_there_is_no_money() -> None:
    worked("trades", 0, today=datetime.now(timezone.utc).date())
    made_plan()
    done = sluice("status", "--cost")
    assert "EUR" not in done.output and "write a document `prices`" in done.output
    document = json.loads(sluice("status", "--cost", "--json").output)
    assert (document["money"], document["prices"], document["tableflow"]) == (None, None, None)


@pytest.mark.parametrize(
    "arguments",
    [("--days", "3"), ("--cost", "--days", "0"), ("--cost", "--days", "41"), ("--cost", "--watch"), ("--cost", "--partitions")],
)
def test_what_has_no_effect_is_refused(arguments: tuple[str, ...]) -> None:
    made_plan()
    assert sluice("status", *arguments).exit_code == 2


@pytest.mark.slow
def test_a_catalog_that_does_not_answer_is_said() -> None:
    worked("trades", 0)
    made_plan(more=PRICES)
    Path("lake.db").write_bytes(b"no database" * 1000)
    done = sluice("status", "--cost")
    assert done.exit_code == 1 and "trades: " in done.output and "hint: " in done.output and "?" in done.output
    (table,) = json.loads(sluice("status", "--cost", "--json").output)["tables"]
    assert table["code"] and table["hint"] and table["batches"] is None and table["money"] is None


def test_the_most_days_are_those_that_tables_keep() -> None:
    assert sluice_help().count(f"x<={cost.MOST_DAYS}") == 1


def sluice_help() -> str:
    from click.testing import CliRunner

    from framework.host.cli import main

    return CliRunner().invoke(main, ["status", "--help"]).output


def test_money_has_a_sum() -> None:
    assert (Money(storage=1, requests=2, processors=3) + Money(storage=1)).total == 7
