"""Dagster's sensor `Keys`: it replaces keys that are due."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import DagsterInstance, SensorDefinition, build_sensor_context

from framework.host.assets import build_sluice_definitions
from tests.support.alerting import ORDERS
from tests.support.key_specs import write
from tests.support.project import BASE
from tests.support.shop import NOWHERE

pytestmark = pytest.mark.slow
SPECS = f"{BASE.format(bootstrap=NOWHERE)}---{ORDERS}---\nkeys: readers\nof: serve\nsecret: readers\n"


def sensors(name: str) -> list[SensorDefinition]:
    return [sensor for sensor in build_sluice_definitions(Path("specs")).sensors or [] if sensor.name == name]


@pytest.mark.usefixtures("own_folder")
def test_it_replaces_what_is_due() -> None:
    write(SPECS, {})
    assert not sensors("Keys"), "nothing is due by itself"
    write(f"{SPECS}rotate_every: 30d\n", {})
    (sensor,) = sensors("Keys")
    with DagsterInstance.ephemeral() as instance:
        texts = [sensor.evaluate_tick(build_sensor_context(instance)).skip_message for _ in range(2)]
        assert (
            texts[0]
            == "readers: key 1 is made, reader-1; nothing uses it yet; readers: key 1 is used from the next login on, reader-1"
        )
        assert texts[1] == "no key is due"
        Path(".sluice/secrets").chmod(0o644)
        text = sensor.evaluate_tick(build_sensor_context(instance)).skip_message
        assert text and text.startswith("open-secrets: readers: others can read .sluice/secrets")
    assert "readers_key=reader-1\n" in Path(".sluice/secrets").read_text()
