"""Dates and times as ISO 8601 writes them: the one format of times in everything that Sluice prints."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.(\d+)")


def read(text: str) -> datetime:
    """A moment, with the zone that the text has. Python 3.10 knows neither `Z` nor a fraction of one digit."""
    return datetime.fromisoformat(_FRACTION.sub(lambda match: f".{match[1][:6]:0<6}", text.replace("Z", "+00:00")))


def text(time: datetime) -> str:
    """A moment in UTC, with `Z`; milliseconds or microseconds only where they are not zero."""
    fraction = "seconds" if not time.microsecond else "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec=fraction) + "Z"
