"""When a cron schedule fires: as in Dagster."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from dagster._utils.schedules import cron_string_iterator

from framework.language import cron

BERLIN = ZoneInfo("Europe/Berlin")


def field(chance: random.Random, low: int, high: int) -> str:
    number, other = sorted(chance.sample(range(low, high + 1), 2))
    return chance.choice(("*", str(number), f"{number}-{other}", f"*/{chance.randint(2, high)}", f"{number},{other}"))


def days(chance: random.Random, low: int, high: int) -> str:
    """Returns days of a month or week. Of ranges and steps Dagster means different things by how they are written."""
    number, other = sorted(chance.sample(range(low, high + 1), 2))
    return chance.choice(("*", str(number), f"{number},{other}"))


def test_schedules_fire_as_in_dagster() -> None:
    chance = random.Random(7)
    for _ in range(400):
        parts = (field(chance, 0, 59), field(chance, 0, 23), days(chance, 1, 28), field(chance, 1, 12), days(chance, 0, 6))
        schedule = cron.read(" ".join(parts))
        moment = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=chance.randint(0, 10**8))
        dagsters = next(cron_string_iterator(moment.timestamp() + 1, schedule, "UTC"))  # which begins at its moment
        assert cron.next_after(schedule, moment) == dagsters, (schedule, moment)


@pytest.mark.parametrize(
    ("schedule", "moment", "expected"),
    [
        ("0 6 * * *", "2026-03-28T06:00:00+01:00", "2026-03-29T06:00:00+02:00"),
        ("30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:30:00+02:00"),  # 2:30 is left out that day
        ("0 0 29 2 *", "2026-01-01T00:00:00+01:00", "2028-02-29T00:00:00+01:00"),
        ("0 12 * * sun", "2026-11-28T12:00:00+01:00", "2026-11-29T12:00:00+01:00"),
        ("0 12 * * 7", "2026-11-28T12:00:00+01:00", "2026-11-29T12:00:00+01:00"),
        ("0 12 1 * mon", "2026-11-28T12:00:00+01:00", "2026-11-30T12:00:00+01:00"),
    ],
)
def test_a_schedule_of_a_time_zone(schedule: str, moment: str, expected: str) -> None:
    fires = cron.next_after(cron.read(schedule), datetime.fromisoformat(moment).astimezone(BERLIN))
    assert fires.isoformat() == expected
