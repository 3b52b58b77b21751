"""Exports: their files, and the output of a second export of the same window."""

from __future__ import annotations

import csv
import errno
import json
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from framework.features.export import write as writing
from framework.host.cli import main
from framework.host.plans import make
from tests.support.exports import export, put, specs, utc

pytestmark = pytest.mark.slow

QUERY = "select channel, count(*) as orders, sum(amount) as amount from input group by channel order by channel"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    specs(QUERY)
    return tmp_path


def test_the_rows_of_a_week_as_csv_for_spreadsheets(shop: Path) -> None:
    snapshot = put(
        ("o-1", "web", "10.50", utc("2026-11-08T23:00")),  # the first moment of Monday in Berlin
        ("o-2", "web", "0.25", utc("2026-11-15T22:59:59.999999")),
        ("o-3", "=cmd|' /C calc'!A0", "1.00", utc("2026-11-10T12:00")),
        ("o-4", 'a "b", c\nd', "2.00", utc("2026-11-10T12:00")),
        ("o-5", None, "3.00", utc("2026-11-10T12:00")),
        ("o-6", "late", "9.00", utc("2026-11-15T23:00")),
        ("o-7", "early", "9.00", utc("2026-11-08T22:59:59")),
    )  # fmt: skip
    done = export("weekly", "--window", "2026-W46")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("weekly: 2026-W46 (2026-11-08T23:00:00Z to 2026-11-15T23:00:00Z): 4 rows, ")
    assert f"exports/weekly_2026-11-09.csv, from snapshot {snapshot} of shop.orders" in done.output
    data = Path("exports/weekly_2026-11-09.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(data.decode("utf-8-sig").splitlines(keepends=True)))
    assert rows == [
        ["channel", "orders", "amount"], ["'=cmd|' /C calc'!A0", "1", "1.00"], ['a "b", c\nd', "1", "2.00"], ["web", "2", "10.75"],
        ["", "1", "3.00"],
    ]  # fmt: skip
    assert [path.name for path in Path("exports").iterdir()] == ["weekly_2026-11-09.csv"]


def test_a_window_again(shop: Path) -> None:
    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    export("weekly", "--window", "2026-W46")
    second_output = export("weekly", "--window", "2026-W46").output
    assert "\n  the same content as on 2" in second_output
    put(("o-2", "store", "1.00", utc("2026-11-11T12:00")))
    third_output = export("weekly", "--window", "2026-W46").output
    assert "\n  replaces the file of 2" in third_output
    assert third_output.endswith(": 1 row more\n")
    assert len(Path("exports/weekly_2026-11-09.csv").read_text(encoding="utf-8-sig").splitlines()) == 3


def test_a_window_without_rows_is_a_file_with_names_alone(shop: Path) -> None:
    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    assert ": 0 rows, " in export("weekly", "--window", "2026-W40").output
    assert Path("exports/weekly_2026-09-28.csv").read_text(encoding="utf-8-sig") == "channel,orders,amount\n"


def test_a_whole_table_as_parquet_says_its_snapshot(shop: Path) -> None:
    snapshot = put(("o-1", "web", "1.00", utc("2026-11-10T12:00")), ("o-2", None, "2.50", utc("2026-11-10T12:00:00.123456")))
    assert export("whole").exit_code == 0
    written = pq.read_table("exports/orders.parquet")
    assert written.to_pylist()[1]["at"] == datetime(2026, 11, 10, 12, 0, 0, 123456, tzinfo=timezone.utc)
    assert written.column("amount").to_pylist() == [Decimal("1.00"), Decimal("2.50")]
    about = pq.read_metadata("exports/orders.parquet").metadata
    assert about[b"sluice_snapshot"] == str(snapshot).encode()
    assert about[b"sluice_table"] == b"shop.orders"


def test_days_and_local_times(shop: Path) -> None:
    put(("o-1", "web", "1.00", utc("2026-11-10T00:00")), ("o-2", "web", "2.00", utc("2026-11-10T23:59")),
        ("o-3", "web", "3.00", utc("2026-11-11T00:00")))  # fmt: skip
    assert export("lines", "--window", "2026-11-10").exit_code == 0
    lines = Path("exports/2026/11-10.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"order_id": "o-1", "amount": 1.0}, {"order_id": "o-2", "amount": 2.0}]
    assert export("local", "--window", "2026-11-09T23").exit_code == 0  # midnight in Berlin
    assert Path("exports/2026-11-10T00+0100.csv").read_text() == "order_id\no-1\n"


def test_a_file_appears_whole_or_not_at_all(shop: Path) -> None:
    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    export("weekly", "--window", "2026-W46")
    before = Path("exports/weekly_2026-11-09.csv").read_bytes()
    specs("select channel, cast(order_id as int) as orders from input")
    failed = export("weekly", "--window", "2026-W46")
    assert failed.exit_code == 1
    assert "query-failed: Conversion Error" in failed.stderr
    assert Path("exports/weekly_2026-11-09.csv").read_bytes() == before
    assert len(list(Path("exports").iterdir())) == 1


def test_rows_are_of_one_snapshot(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a batch that lands while the file is written stay out of it."""
    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    copied = writing._copied

    def late(*arguments: Any) -> int:
        put(("o-2", "web", "1.00", utc("2026-11-10T12:00")))
        return copied(*arguments)

    # Nothing calls a test between the choice of the snapshot and the reading.
    monkeypatch.setattr(writing, "_copied", late)
    assert export("whole").exit_code == 0
    assert pq.read_table("exports/orders.parquet").num_rows == 1


def test_a_file_stays_in_the_project(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    Path("exports").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    refused = export("whole")
    assert refused.exit_code == 1
    assert "bad-location: exports/orders.parquet, the file of whole, leads out of the project" in refused.stderr


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("select chanel from input", "bad-query", 'Referenced column "chanel" not found'),
        ("select * from shop.orders", "unknown-table", "there is no table `shop.orders`"),
        ("select * from read_csv('x')", "unknown-table", "there is no table `read_csv(…)`"),
        ("drop table input", "not-a-select", "a query is one SELECT"),
        ("select sum(channel) from input", "bad-query", "sum(VARCHAR)"),
    ],
)
def test_a_query_is_checked_before_there_is_a_table(shop: Path, query: str, code: str, text: str) -> None:
    specs(query)
    checked = CliRunner().invoke(main, ["check", "--json"])
    (problem,) = json.loads(checked.stdout)
    assert (problem["code"], problem["line"]) == (code, 21)
    assert text in problem["message"]


def test_names_and_windows_that_are_not_there_are_refused(shop: Path) -> None:
    assert "no-table: the table shop.orders, which weekly exports, does not exist yet" in export("weekly").stderr
    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    assert "unknown-export: there is no export `weakly`" in export("weakly").stderr
    assert "bad-window: `9999-W52` is not a week" in export("weekly", "--window", "9999-W52").stderr
    assert "no-window: whole exports the whole table" in export("whole", "--window", "2026-W46").stderr
    assert "--window needs the name of one export" in export("--window", "2026-W46").stderr


def test_an_export_is_an_asset_with_a_schedule(shop: Path) -> None:
    from dagster import AssetKey, materialize

    from framework.host.assets import exports
    from framework.host.assets.translator import Assets

    put(("o-1", "web", "1.00", utc("2026-11-10T12:00")))
    plan = make(Path("specs"))
    assets = Assets(plan)
    planned = {planned_export.name: planned_export for planned_export in assets.exports}
    config = {"ops": {"Export_weekly": {"config": {"window": "2026-W46"}}}}
    result = materialize([exports.asset(planned["weekly"], assets, plan.secrets)], run_config=config)
    (event,) = result.asset_materializations_for_node("Export_weekly")
    assert event.asset_key == AssetKey(["exports", "weekly"])
    assert event.metadata["dagster/row_count"].value == 1
    assert Path("exports/weekly_2026-11-09.csv").exists()
    failed = materialize(
        [exports.asset(planned["weekly"], assets, plan.secrets)],
        run_config={"ops": {"Export_weekly": {"config": {"window": "x"}}}},
        raise_on_error=False,
    )
    assert not failed.success


def test_a_file_in_the_place_of_a_folder_is_named(shop: Path) -> None:
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    Path("exports").write_text("")
    refused = export("weekly", "--window", "2026-W46")
    assert refused.exit_code == 1
    assert "bad-location: exports/weekly_2026-11-09.csv, the file of weekly, needs a folder where a file is: " in refused.stderr


def test_a_full_disk_is_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    monkeypatch.setattr(os, "fsync", full)  # a small disk takes the rights of root
    refused = export("weekly", "--window", "2026-W46")
    assert refused.stderr == "disk-full: the disk is full\n  hint: free some space and run again\n"
    assert not list(Path("exports").iterdir())


def test_a_tick_that_comes_late_writes_the_window_of_its_own_time(shop: Path) -> None:
    from dagster import RunRequest, build_schedule_context

    from framework.host.assets import exports
    from framework.host.assets.translator import Assets

    assets = Assets(make(Path("specs")))
    planned = next(planned_export for planned_export in assets.exports if planned_export.name == "weekly")
    weekly = exports.schedule_of(replace(planned, schedule="0 6 * * 1"), assets, "stopped")
    with build_schedule_context(scheduled_execution_time=utc("2026-01-07T06:00")) as context:
        (request,) = weekly.evaluate_tick(context).run_requests or ()
    assert isinstance(request, RunRequest)
    assert request.run_config == {"ops": {"Export_weekly": {"config": {"window": "2026-W01"}}}}


def test_columns_of_one_name_keep_their_own_values(shop: Path) -> None:
    specs("select order_id, channel as n, amount as N from input order by 1 -- all of it")
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    done = export("weekly", "--window", "2026-W46")
    assert done.exit_code == 0, done.output
    assert Path("exports/weekly_2026-11-09.csv").read_text("utf-8-sig").splitlines() == ["order_id,n,N_1", "o-1,web,10.50"]


def test_a_query_may_end_in_a_comment(shop: Path) -> None:
    text = (
        Path("specs/all.yaml")
        .read_text()
        .replace("from input order by order_id\nfile: {format: jsonl", "from input -- all\nfile: {format: jsonl")
    )
    Path("specs/all.yaml").write_text(text)
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    done = export("lines", "--window", "2026-11-10")
    assert done.exit_code == 0, done.output
    assert '"order_id":"o-1"' in Path("exports/2026/11-10.jsonl").read_text()


def test_one_that_fails_does_not_keep_the_others_back(shop: Path) -> None:
    specs("select cast(channel as int) as wrong from input")
    put(("o-1", "web", "1.00", datetime.now(timezone.utc) - timedelta(days=7)))
    done = export()
    assert done.exit_code == 1
    assert "weekly: " in done.stderr
    assert Path("exports/orders.parquet").exists()
