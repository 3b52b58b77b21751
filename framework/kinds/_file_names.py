"""Names of exported files and other texts with times of a window in them."""

from __future__ import annotations

import string
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise

from framework.model.export import Length

_FIRST = datetime(2026, 2, 2)  # a Monday; four weeks later is the second of a month again
_LATER = {  # starts of windows that many patterns cannot tell from the first
    "hour": (timedelta(hours=1), timedelta(hours=12), timedelta(days=1), timedelta(days=7), timedelta(days=28)),
    "day": (timedelta(days=1), timedelta(days=7), timedelta(days=28)),
    "week": (timedelta(days=7), timedelta(days=28), timedelta(days=364)),
    "month": (timedelta(days=28),),
}
_YEARS = (2027, 2032)
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=31)}


def bad_template(to: str, windowed: bool, what: str = "a file's name") -> str | None:
    """The fault of a file's name, or of another text of a window."""
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(to) if field is not None]
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
    first = _FIRST.replace(day=1) if length == "month" else _FIRST
    starts = [first, *(first + each for each in _LATER[length]), *(first.replace(year=each) for each in _YEARS)]
    starts_there = [each.replace(tzinfo=zone) for each in starts if length != "week" or not each.weekday()]
    for later in starts_there[1:]:
        if _named(to, length, later) == _named(to, length, starts_there[0]):
            hint = "write its year, month and day" + (", and its hour" if length == "hour" else "")
            return _words(
                to, length, starts_there[0], later
            ), f"{hint}: `{{window_start:%Y-%m-%d{'T%H' if length == 'hour' else ''}}}`"
    if length == "hour":
        for one, other in _repeated(zone):
            if _named(to, length, one) == _named(to, length, other):
                return _words(
                    to, length, one, other
                ), "write its distance to UTC, too, as `{window_start:%Y-%m-%dT%H%z}`; or `timezone: UTC`"
    return None


def _words(to: str, length: Length, one: datetime, other: datetime) -> str:
    since = (each.isoformat() if length == "hour" else each.date().isoformat() for each in (one, other))
    return f"`{to}` is one file for two windows: the {length}s from {' and from '.join(since)}"


def _named(to: str, length: Length, start: datetime) -> str:
    zone = start.tzinfo
    end = (start.astimezone(timezone.utc) + _LENGTHS[length]).astimezone(zone) if length == "hour" else start + _LENGTHS[length]
    return to.format(window_start=start, window_end=end)


def _repeated(zone: tzinfo) -> Iterator[tuple[datetime, datetime]]:
    """Hours of a year that a clock in this zone shows twice."""
    day = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for _ in range(366):
        if day.astimezone(zone).utcoffset() != (day + timedelta(days=1)).astimezone(zone).utcoffset():
            hours = [(day + timedelta(hours=each)).astimezone(zone) for each in range(26)]
            for one, other in pairwise(hours):
                if one.replace(tzinfo=None) == other.replace(tzinfo=None):
                    yield one, other
        day += timedelta(days=1)
