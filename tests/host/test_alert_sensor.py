"""Dagster's sensor `Alerts`: it judges, tells, and shows on the table's page what holds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterInstance, build_sensor_context

from framework.core.rules import journal
from framework.host.assets import build_sluice_definitions
from tests.support.alerting import ORDERS, alert, mail_by, pause
from tests.support.mail_server import mail_server
from tests.support.project import BASE
from tests.support.shop import NOWHERE

pytestmark = pytest.mark.slow
ALERT = alert("{paused_for: 1d}", "on: {table: shop.orders}")


def tick(spec_folder: Path, instance: DagsterInstance) -> Any:
    """One tick of the sensor, whose evaluations are recorded as the daemon does."""
    (sensor,) = [sensor for sensor in build_sluice_definitions(spec_folder).sensors or [] if sensor.name == "Alerts"]
    result: Any = sensor.evaluate_tick(build_sensor_context(instance))
    for evaluation in result.asset_events:
        instance.report_runless_asset_event(evaluation)
    return result


def test_without_alerts_there_is_no_sensor_and_no_check(spec_folder: Path) -> None:
    (spec_folder / "main.yaml").write_text(f"{BASE.format(bootstrap=NOWHERE)}---{ORDERS}{mail_by(1)}")
    definitions = build_sluice_definitions(spec_folder)
    assert "Alerts" not in [sensor.name for sensor in definitions.sensors or []]
    assert "alerts" not in [key.name for key in definitions.resolve_asset_graph().asset_check_keys]


def test_it_tells_and_shows_what_holds(spec_folder: Path) -> None:
    with mail_server() as (box, port), DagsterInstance.ephemeral() as instance:
        (spec_folder / "main.yaml").write_text(f"{BASE.format(bootstrap=NOWHERE)}---{ORDERS}{mail_by(port)}{ALERT}")
        keys = [
            key for key in build_sluice_definitions(spec_folder).resolve_asset_graph().asset_check_keys if key.name == "alerts"
        ]
        assert keys == [AssetCheckKey(AssetKey(["lake", "shop", "orders"]), "alerts")]
        first = tick(spec_folder, instance)
        assert (first.skip_message, [each.passed for each in first.asset_events]) == ("no alert holds", [True])
        pause("orders", since=datetime.now(timezone.utc) - timedelta(days=2))
        second = tick(spec_folder, instance)
        (shown,) = second.asset_events
        assert (shown.passed, shown.description) == (False, "stopped: paused for 2 d")
        assert second.skip_message == "stopped on shop.orders holds; stopped: shop.orders: mailed to ops@example.com"
        assert tick(spec_folder, instance).asset_events == []
        journal.resume("orders")
        assert [each.passed for each in tick(spec_folder, instance).asset_events] == [True]
    assert [mail["Subject"] for mail in box.mails] == ["stopped: shop.orders", "stopped is over: shop.orders"]
