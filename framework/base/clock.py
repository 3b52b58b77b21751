"""The clock that work goes by. Code that must go by another clock gets it as an argument."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
Clock: TypeAlias = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def micros(moment: datetime) -> int:
    """Microseconds since 1970, as Kafka's and Spark's times are compared."""
    return (moment - _EPOCH) // _MICROSECOND
