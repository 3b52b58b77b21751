"""The one format of times in what Sluice prints."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from framework.base import iso_times

ROOT = Path(iso_times.__file__).parents[1]
TEN = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
OTHER_FORMAT = re.compile(r"%H:%M|\.isoformat\(|%Y-%m-%d %H")
# Commands and pages for people, and what is sent to them.
PRINTING = (
    "host/cli",
    "host/assets",
    "features/notices",
    "operations/undo",
    "core/iceberg",
    "operations/observe",
    "features/export/notify.py",
    "operations/trials/preview_text.py",
)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (TEN, "2026-01-05T10:00:00Z"),
        (TEN.astimezone(timezone(timedelta(hours=-3, minutes=-30))), "2026-01-05T10:00:00Z"),
        (TEN.replace(microsecond=700_000), "2026-01-05T10:00:00.700Z"),
        (TEN.replace(microsecond=7), "2026-01-05T10:00:00.000007Z"),
    ],
)
def test_a_time_is_in_utc_with_a_fraction_only_where_it_is_not_zero(time: datetime, text: str) -> None:
    assert iso_times.text(time) == text
    assert iso_times.of_text(time.isoformat()) == text
    assert iso_times.read(text) == time


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("2026-01-05 10:00:00+00", "2026-01-05T10:00:00Z"),
        ("2026-01-05 10:00:00", "2026-01-05T10:00:00"),
        ("2026-01-05 10:00:00.7+00", "2026-01-05T10:00:00.700Z"),
        ("2026-01-05 10:00:00.000000", "2026-01-05T10:00:00"),
        ("2026-01-05 10:00:00.1234", "2026-01-05T10:00:00.123400"),
        ("99999-01-01 00:00:00.123456789+00", "99999-01-01T00:00:00.123456789Z"),
        ("2026-01-05T10:00:00.250000Z", "2026-01-05T10:00:00.250Z"),
        ("infinity", "infinity"),
    ],
)
def test_a_time_of_an_engine_of_sql_is_printed_in_the_same_format(sql: str, text: str) -> None:
    assert iso_times.of_sql(sql) == text


@pytest.mark.parametrize("place", PRINTING)
def test_nothing_that_prints_has_a_format_of_times_of_its_own(place: str) -> None:
    files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).glob("*.py"))
    assert files
    lines = [
        f"{file.name}: {line.strip()}" for file in files for line in file.read_text().splitlines() if OTHER_FORMAT.search(line)
    ]
    assert [line for line in lines if "_SINCE:" not in line] == []  # a property of a table, which no one reads
