"""The windows of exports: hours, days, weeks and months of a time zone, also where clocks change."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from framework.base.errors import SluiceError
from framework.features.export import window as windows
from framework.plan.export import Window


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


BERLIN = Window(last="week", by="at", timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("unit", "moment", "name", "start", "end"),
    [
        ("week", "2026-11-24T22:00", "2026-W47", "2026-11-16T00:00+01:00", "2026-11-23T00:00+01:00"),
        ("week", "2026-11-22T22:59", "2026-W46", "2026-11-09T00:00+01:00", "2026-11-16T00:00+01:00"),
        ("week", "2026-11-22T23:00", "2026-W47", "2026-11-16T00:00+01:00", "2026-11-23T00:00+01:00"),
        ("week", "2026-10-26T12:00", "2026-W43", "2026-10-19T00:00+02:00", "2026-10-26T00:00+01:00"),
        ("week", "2027-01-05T12:00", "2026-W53", "2026-12-28T00:00+01:00", "2027-01-04T00:00+01:00"),
        ("day", "2026-10-26T12:00", "2026-10-25", "2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),
        ("day", "2026-03-30T12:00", "2026-03-29", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"),
        ("month", "2026-03-01T12:00", "2026-02", "2026-02-01T00:00+01:00", "2026-03-01T00:00+01:00"),
        ("month", "2026-02-28T23:30", "2026-02", "2026-02-01T00:00+01:00", "2026-03-01T00:00+01:00"),
        ("hour", "2026-10-25T01:30", "2026-10-25T00", "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"),
        ("hour", "2026-10-25T02:30", "2026-10-25T01", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"),
    ],
)
def test_the_last_complete_window(unit: Any, moment: str, name: str, start: str, end: str) -> None:
    window = Window(last=unit, by="at", timezone="Europe/Berlin")
    span = windows.last_complete(window, utc(moment))
    assert (span.name, span.start.isoformat(timespec="minutes"), span.end.isoformat(timespec="minutes")) == (name, start, end)
    assert windows.named(window, name, utc(moment)) == span


@given(
    st.sampled_from(["hour", "day", "week", "month"]), st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
    st.datetimes(datetime(2001, 1, 1), datetime(2090, 1, 1), timezones=st.just(timezone.utc)),
)  # fmt: skip
@example("hour", "America/New_York", datetime(2027, 11, 7, 6, tzinfo=timezone.utc))
def test_windows_follow_each_other_without_gaps(unit: Any, zone: str, moment: datetime) -> None:
    window = Window(last=unit, by="at", timezone=zone)
    span = windows.last_complete(window, moment)
    assert span.end <= moment < span.end + timedelta(days=32)
    # In UTC: in a zone, Python counts by the clock on the wall, which goes back an hour in autumn.
    before = windows.last_complete(window, span.end.astimezone(timezone.utc) - timedelta(microseconds=1))
    assert before.end.astimezone(timezone.utc) == span.start.astimezone(timezone.utc)
    assert windows.named(window, span.name, moment) == span


@pytest.mark.parametrize("name", ["2026-W54", "2026-11", "2026-W46 ", "W46", "2026-W00", "last week"])
def test_a_window_that_is_none(name: str) -> None:
    with pytest.raises(SluiceError, match="is not a week"):
        windows.named(BERLIN, name, utc("2026-11-24T22:00"))


def test_a_window_that_is_not_over() -> None:
    with pytest.raises(SluiceError, match="the week 2026-W48 ends at 2026-11-29T23:00:00Z") as refused:
        windows.named(BERLIN, "2026-W48", utc("2026-11-24T22:00"))
    assert refused.value.hint == "the last complete one is `2026-W47`"
