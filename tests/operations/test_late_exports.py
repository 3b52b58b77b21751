"""Exports that are late: in the alert `behind`, in the metrics, and in what `any` means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from framework.features.export import records
from framework.features.export.records import Record
from framework.operations.alerts.judge import judge
from framework.operations.metrics import values_of_table
from framework.operations.observe.status import statuses
from framework.plan import Plan
from tests.support.alerting import ORDERS, alert, mail_by
from tests.support.mail_server import mail_server
from tests.support.project import plan_for
from tests.support.shop import NOWHERE

EXPORTS = """---
export: nightly
from: {table: shop.orders}
file: {format: csv, to: exports/nightly.csv}
schedule: "0 3 * * *"
---
export: by_hand
from: {table: shop.orders}
file: {format: csv, to: exports/hand.csv}
"""
RECORD = '[{"window": "", "file": "x", "snapshot": 1, "rows": 1, "bytes": 1, "sha256": "", "at": %s}]'
pytestmark = pytest.mark.usefixtures("own_folder")
MONDAY = datetime(2026, 1, 5, tzinfo=timezone.utc)


def planned(name: str = "nightly", port: int = 1) -> Plan:
    specs = ORDERS + mail_by(port) + EXPORTS + alert(f"{{behind: {name}, for: 1h}}", "on: {table: shop.orders}")
    return plan_for(Path.cwd(), NOWHERE, specs)


def wrote(export: str, time: datetime, window: str = "") -> None:
    record = Record(window=window, file="x.csv", snapshot=1, rows=1, bytes=1, sha256="", at=time.isoformat(timespec="seconds"))
    records.add(export, record)


def at(hours: float) -> Callable[[], datetime]:
    """A clock that shows so many hours after Monday's midnight."""
    return lambda: MONDAY + timedelta(hours=hours)


def holds(plan: Plan, hours: float) -> list[str]:
    return [judged.why for judged in judge(plan, at(hours), sends=False).judged if judged.holds]


def numbers(plan: Plan, hours: float) -> dict[str, object]:
    (status,) = statuses(plan, [pipeline for pipeline in plan.pipelines if pipeline.name == "orders"], clock=at(hours))
    return {name: value for name, value in values_of_table(status).items() if name.startswith("export")}


@pytest.mark.parametrize("name", ["nightly", "any"])
def test_an_export_is_behind_once_its_file_was_due_for_so_long(name: str) -> None:
    plan = planned(name)
    wrote("nightly", MONDAY + timedelta(hours=3, minutes=1))
    assert (holds(plan, 26), holds(plan, 27.9), holds(plan, 28)) == ([], [], [
        "a file of the export nightly has been due for more than 1h",
    ])  # fmt: skip
    wrote("nightly", MONDAY + timedelta(hours=28))
    assert holds(plan, 29) == []


def test_an_export_of_which_this_machine_has_no_record_is_unknown() -> None:
    plan = planned()
    assert [judged.unknown for judged in judge(plan, at(100), sends=False).judged] == [True]
    assert holds(plan, 1000) == [], "another machine may write it"


def test_a_file_of_an_old_window_is_none_that_was_due() -> None:
    window = "window: {last: day, by: _kafka_timestamp, timezone: UTC}\n"
    exports = EXPORTS.replace("nightly.csv", '"nightly_{window_start:%Y-%m-%d}.csv"').replace('to: exports/"', 'to: "exports/')
    plan = plan_for(Path.cwd(), NOWHERE, ORDERS + exports.replace('schedule: "0 3', f'{window}schedule: "0 3'))
    wrote("nightly", MONDAY + timedelta(hours=3), window="2026-01-04")
    wrote("nightly", MONDAY + timedelta(hours=40), window="2025-11-02")
    wrote("nightly", MONDAY + timedelta(hours=40), window="2026-W01")
    assert numbers(plan, 41)["export_late_seconds"] == {"nightly": 14 * 3600}, "it was due at 27 hours"
    wrote("nightly", MONDAY + timedelta(hours=41), window="2026-01-05")
    assert numbers(plan, 41)["export_late_seconds"] == {"nightly": 0}


def test_an_end_is_told() -> None:
    with mail_server() as (box, port):
        plan = planned(port=port)
        wrote("nightly", MONDAY)
        judge(plan, at(5))
        wrote("nightly", MONDAY + timedelta(hours=5))
        judge(plan, at(6))
    assert [mail["Subject"] for mail in box.mails] == ["stopped: shop.orders", "stopped is over: shop.orders"]


def test_metrics_have_the_age_of_the_last_file_and_for_how_long_one_is_due() -> None:
    plan = planned()
    assert numbers(plan, 5) == {}
    wrote("nightly", MONDAY)
    wrote("by_hand", MONDAY)
    assert numbers(plan, 2) == {
        "export_file_age_seconds": {"by_hand": 7200, "nightly": 7200},
        "export_late_seconds": {"nightly": 0},
    }
    assert numbers(plan, 5)["export_late_seconds"] == {"nightly": 7200}


def test_records_that_cannot_be_read_are_none() -> None:
    plan = planned()
    records.file("nightly").parent.mkdir(parents=True)
    for text in ("no json", "[]", "{}", '[{"window": ""}]', *(RECORD % time for time in ("null", '"x"', "3"))):
        records.file("nightly").write_text(text)
        assert numbers(plan, 5) == {} and holds(plan, 5) == []
    records.file("nightly").write_text(RECORD % '"2026-01-05T00:00:00"')  # without a zone
    assert numbers(plan, 5)["export_late_seconds"] == {"nightly": 7200}
