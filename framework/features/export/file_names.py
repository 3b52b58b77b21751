"""Names of exported files and other texts with times of a window in them."""

from __future__ import annotations

import string
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo

from framework.plan.export import Length

_FIRST_DAY = datetime(2024, 1, 1)  # a Monday
_YEARS = 11  # in which each date has been on each day of the week
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}


def bad_template(template: str, windowed: bool, noun: str = "a file's name") -> str | None:
    """The fault of a template for a file's name, or for another text about a window; None if it has none."""
    try:
        parts = [(field, conversion) for _, field, _, conversion in string.Formatter().parse(template) if field is not None]
        if any(conversion for _, conversion in parts):  # as `!r`, behind which there can be a width of any size
            raise ValueError
        fields = [field for field, _ in parts]
        unknown = [field for field in fields if field not in ("window_start", "window_end")]
        if unknown:
            return f"`{{{unknown[0]}}}` is nothing that {noun} can have"
        if fields and not windowed:
            return "without a `window` there is no `{window_start}`"
        if windowed and not fields and noun == "a file's name":
            return "each window needs a file of its own"
        name = _named(template, "week", _FIRST_DAY)
    except (ValueError, IndexError, KeyError):
        return f"`{template}` cannot be filled in"
    return f"`{template}` gives a name with `..`" if ".." in name.split("/") else None


def shared(template: str, length: Length, zone: tzinfo) -> tuple[str, str] | None:
    """A message about two windows whose files would have the same name, and the hint for it; None if all names differ."""
    starts: dict[str, datetime] = {}
    for start in _starts(length, zone):
        name = _named(template, length, start)
        if name in starts:
            start_texts = (
                moment.isoformat() if length == "hour" else moment.date().isoformat() for moment in (starts[name], start)
            )
            message = f"`{template}` is one file for two windows: the {length}s from {' and from '.join(start_texts)}"
            parts = "%Y-%m-%d" if length != "hour" else "%Y-%m-%dT%H" if zone.utcoffset(None) is not None else "%Y-%m-%dT%H%z"
            return message, f"write what tells all of them apart: `{{window_start:{parts}}}`"
        starts[name] = start
    return None


def _starts(length: Length, zone: tzinfo) -> Iterator[datetime]:
    """The starts of all windows of some years. Of hours, only the first hour of each day, the hours of one day, and the hours
    around changes of the clock."""
    first_start = _FIRST_DAY.replace(tzinfo=zone)
    if length == "month":
        yield from (
            first_start.replace(year=first_start.year + year, month=month) for year in range(_YEARS) for month in range(1, 13)
        )
        return
    for days in range(0, _YEARS * 365, 7 if length == "week" else 1):
        yield first_start + timedelta(days=days)
    if length == "hour":
        yield from (first_start + timedelta(hours=hours) for hours in range(1, 24))
        yield from _changed_clocks(zone)


def _changed_clocks(zone: tzinfo) -> Iterator[datetime]:
    """The hours around each change of a clock in a year."""
    day = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    for _ in range(366):
        if day.astimezone(zone).utcoffset() != (day + timedelta(days=1)).astimezone(zone).utcoffset():
            hours = ((day + timedelta(hours=hour)).astimezone(zone) for hour in range(24))
            yield from (
                hour_start for hour_start in hours if hour_start.hour or hour_start.minute or hour_start.fold
            )  # the first midnight is among the starts of days already
        day += timedelta(days=1)


def _named(template: str, length: Length, start: datetime) -> str:
    if length == "month":
        end = (start + timedelta(days=31)).replace(day=1)
    elif length == "hour":
        end = (start.astimezone(timezone.utc) + _LENGTHS[length]).astimezone(start.tzinfo)
    else:
        end = start + _LENGTHS[length]
    return template.format(window_start=start, window_end=end)
