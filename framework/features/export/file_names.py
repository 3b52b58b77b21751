"""Names of exported files and other texts with times of a window in them."""

from __future__ import annotations

import string
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo

from framework.plan.export import Length

_FIRST = datetime(2024, 1, 1)  # a Monday
_YEARS = 11  # in which each date has been on each day of the week
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}


def bad_template(to: str, windowed: bool, what: str = "a file's name") -> str | None:
    """The fault of a file's name, or of another text of a window."""
    try:
        parts = [(field, how) for _, field, _, how in string.Formatter().parse(to) if field is not None]
        if any(how for _, how in parts):  # as `!r`, behind which there can be a width of any size
            raise ValueError
        fields = [field for field, _ in parts]
        unknown = [field for field in fields if field not in ("window_start", "window_end")]
        if unknown:
            return f"`{{{unknown[0]}}}` is nothing that {what} can have"
        if fields and not windowed:
            return "without a `window` there is no `{window_start}`"
        if windowed and not fields and what == "a file's name":
            return "each window needs a file of its own"
        name = _named(to, "week", _FIRST)
    except (ValueError, IndexError, KeyError):
        return f"`{to}` cannot be filled in"
    return f"`{to}` gives a name with `..`" if ".." in name.split("/") else None


def shared(to: str, length: Length, zone: tzinfo) -> tuple[str, str] | None:
    """Two windows whose files would have one name, in words, and what to write instead."""
    there: dict[str, datetime] = {}
    for start in _starts(length, zone):
        name = _named(to, length, start)
        if name in there:
            since = (each.isoformat() if length == "hour" else each.date().isoformat() for each in (there[name], start))
            message = f"`{to}` is one file for two windows: the {length}s from {' and from '.join(since)}"
            parts = "%Y-%m-%d" if length != "hour" else "%Y-%m-%dT%H" if zone.utcoffset(None) is not None else "%Y-%m-%dT%H%z"
            return message, f"write what tells all of them apart: `{{window_start:{parts}}}`"
        there[name] = start
    return None


def _starts(length: Length, zone: tzinfo) -> Iterator[datetime]:
    """The starts of all windows of some years; of hours the first one of each day, those of a day, and those in which a clock changes."""
    first = _FIRST.replace(tzinfo=zone)
    if length == "month":
        yield from (first.replace(year=first.year + year, month=month) for year in range(_YEARS) for month in range(1, 13))
        return
    for at in range(0, _YEARS * 365, 7 if length == "week" else 1):
        yield first + timedelta(days=at)
    if length == "hour":
        yield from (first + timedelta(hours=at) for at in range(1, 24))
        yield from _changed_clocks(zone)


def _changed_clocks(zone: tzinfo) -> Iterator[datetime]:
    """The hours around each change of a clock in a year."""
    day = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    for _ in range(366):
        if day.astimezone(zone).utcoffset() != (day + timedelta(days=1)).astimezone(zone).utcoffset():
            hours = ((day + timedelta(hours=each)).astimezone(zone) for each in range(24))
            yield from (each for each in hours if each.hour or each.minute or each.fold)  # the first midnight was there
        day += timedelta(days=1)


def _named(to: str, length: Length, start: datetime) -> str:
    if length == "month":
        end = (start + timedelta(days=31)).replace(day=1)
    elif length == "hour":
        end = (start.astimezone(timezone.utc) + _LENGTHS[length]).astimezone(start.tzinfo)
    else:
        end = start + _LENGTHS[length]
    return to.format(window_start=start, window_end=end)
