"""Dates and times as ISO 8601 writes them: the one format of times in everything that Sluice prints."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.(\d+)")
_SQL = re.compile(r"(\d{4,}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(\+00|Z)?")


def read(text: str) -> datetime:
    """A moment, with the zone that the text has. Python 3.10 knows neither `Z` nor a fraction of one digit."""
    return datetime.fromisoformat(_FRACTION.sub(lambda match: f".{match[1][:6]:0<6}", text.replace("Z", "+00:00")))


def text(time: datetime) -> str:
    """A moment in UTC, with `Z`; milliseconds or microseconds only where they are not zero."""
    fraction = "seconds" if not time.microsecond else "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec=fraction) + "Z"


def of_seconds(seconds: float) -> str:
    """A moment by the whole seconds since 1970, in the format of `text`."""
    return text(datetime.fromtimestamp(int(seconds), timezone.utc))


def of_text(written: str) -> str:
    """A moment that was written with any zone, in the format of `text`."""
    return text(read(written))


def of_sql(written: str) -> str:
    """A moment as engines of SQL print it, in the format of `text`. `Z` only where it is in UTC: a wall clock's time has no zone. Any
    other text is as it was."""
    match = _SQL.fullmatch(written)
    if match is None:
        return written
    digits = (match[3] or "").strip(".").rstrip("0")
    fraction = f".{digits:0<{-(-len(digits) // 3) * 3}}" if digits else ""
    return f"{match[1]}T{match[2]}{fraction}{'Z' if match[4] else ''}"
