"""Windows of time: the last complete hour, day, week or month of a time zone, and their names, such as `2026-W46`.

A day, a week and a month begin at midnight of the zone, so that a day has 23 or 25 hours where clocks change. An hour is one of UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from framework.base import iso_times
from framework.base.errors import SluiceError
from framework.plan.export import Export, Length, Window

_FORMS = {
    "hour": (re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)(?:Z|\+00(?::?00)?)?"), "2026-11-16T05", "in UTC"),
    "day": (re.compile(r"(\d{4}-\d\d-\d\d)"), "2026-11-16", ""),
    "week": (re.compile(r"(\d{4})-W(\d\d)"), "2026-W46", "a week by ISO 8601"),
    "month": (re.compile(r"(\d{4})-(\d\d)"), "2026-11", ""),
}


@dataclass(frozen=True)
class Span:
    """A window: from `start`, before `end`, both in its time zone."""

    name: str
    start: datetime
    end: datetime


def chosen(export: Export, name: str, moment: datetime) -> Span | None:
    """The window of this name, or without a name the last complete window; None if the whole table is exported."""
    if export.window is not None:
        return named(export.window, name, moment) if name else last_complete(export.window, moment)
    if name:
        hint = "leave out `--window`, or write `window: {last: week, by: …}` into the export"
        raise SluiceError("no-window", f"{export.name} exports the whole table, which has no windows", hint)
    return None


def last_complete(window: Window, moment: datetime) -> Span:
    """The last window that is complete at this moment."""
    zone = ZoneInfo(window.timezone)
    if window.last == "hour":
        hour = moment.astimezone(timezone.utc).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
        return _of_hour(hour, zone)
    today = moment.astimezone(zone).date()
    return _span(window.last, _before(window.last, _first(window.last, today)), zone)


def named(window: Window, name: str, moment: datetime) -> Span:
    """The window of this name. Raises a SluiceError if it is not complete at this moment."""
    pattern, example, words = _FORMS[window.last]
    match = pattern.fullmatch(name)
    zone = ZoneInfo(window.timezone)
    try:
        if match is None:
            raise ValueError
        span = _of_match(window.last, match, zone)
    except (ValueError, OverflowError):
        hint = f"write it like `{example}`{f', {words}' if words else ''}; without `--window` it is the last complete one"
        raise SluiceError("bad-window", f"`{name}` is not {'an' if window.last == 'hour' else 'a'} {window.last}", hint) from None
    if span.end > moment:
        hint = f"the last complete one is `{last_complete(window, moment).name}`"
        raise SluiceError("window-not-over", f"the {window.last} {name} ends at {iso_times.text(span.end)}", hint)
    return span


def _of_match(length: Length, match: re.Match[str], zone: ZoneInfo) -> Span:
    if length == "hour":
        day = date.fromisoformat(match[1])
        return _of_hour(datetime.combine(day, time(int(match[2])), timezone.utc), zone)
    if length == "week":
        return _span(length, date.fromisocalendar(int(match[1]), int(match[2]), 1), zone)
    return _span(length, date.fromisoformat(match[1] if length == "day" else f"{match[1]}-{match[2]}-01"), zone)


def _of_hour(start: datetime, zone: ZoneInfo) -> Span:
    return Span(f"{start:%Y-%m-%dT%H}", start.astimezone(zone), (start + timedelta(hours=1)).astimezone(zone))


def _span(length: Length, first_day: date, zone: ZoneInfo) -> Span:
    if length == "week":
        year, week, _ = first_day.isocalendar()
        name = f"{year}-W{week:02}"
    else:
        name = f"{first_day:%Y-%m}" if length == "month" else first_day.isoformat()
    return Span(name, datetime.combine(first_day, time(), zone), datetime.combine(_next(length, first_day), time(), zone))


def _first(length: Length, day: date) -> date:
    """The first day of the window that contains this day."""
    if length == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if length == "month" else day


def _before(length: Length, first_day: date) -> date:
    return _first(length, first_day - timedelta(days=1))


def _next(length: Length, first_day: date) -> date:
    if length == "month":
        return (first_day + timedelta(days=31)).replace(day=1)
    return first_day + timedelta(days=7 if length == "week" else 1)
