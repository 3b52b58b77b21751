"""Dates and times as ISO 8601 writes them."""

from __future__ import annotations

import re
from datetime import datetime

_FRACTION = re.compile(r"\.(\d+)")


def read(text: str) -> datetime:
    """A moment, with the zone that the text has. Python 3.10 knows neither `Z` nor a fraction of one digit."""
    return datetime.fromisoformat(_FRACTION.sub(lambda match: f".{match[1][:6]:0<6}", text.replace("Z", "+00:00")))
