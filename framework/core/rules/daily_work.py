"""The work of batches by day (UTC): a property of each table beside the sums of all its batches, set by the same commit.

It answers what a table has cost lately without a server that collects anything. A table keeps its last forty days with batches: about
two kilobytes of its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

from framework.core.rules import work
from framework.core.rules.work import Work

PROPERTY = "sluice.work_by_day"
KEPT_DAYS = 40
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class DayWork:
    """The work of some batches of a table. The order of the fields is that in the property: a new one comes last."""

    batches: int = 0
    read: int = 0
    read_bytes: int = 0
    files: int = 0
    bytes: int = 0
    objects: int = 0
    seconds: float = 0.0

    def __add__(self, other: DayWork) -> DayWork:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _NAMES}
        return DayWork(**sums | {"seconds": round(sums["seconds"], 3)})


_NAMES = [field.name for field in fields(DayWork)]


def read(properties: Mapping[str, str]) -> dict[date, DayWork]:
    """The work of a table by day. What cannot be read counts as none: no batch depends on it."""
    with suppress(ValueError, TypeError, OverflowError, RecursionError):
        days = json.loads(properties.get(PROPERTY) or "{}")
        return dict(_valid(days)) if isinstance(days, dict) else {}
    return {}


def with_batch(properties: Mapping[str, str], done: Work, time: datetime) -> dict[str, str]:
    """The properties of a table that tell its work, once a batch that ends at `time` is added to them."""
    day_work = DayWork(
        batches=done.batches, read=done.read, read_bytes=done.read_bytes, files=done.files, bytes=done.bytes, objects=done.objects,
        seconds=sum(done.seconds.values()),
    )  # fmt: skip
    today = time.astimezone(timezone.utc).date()
    earlier_days = {day: done for day, done in read(properties).items() if day <= today + _DAY}  # a later one is of a wrong clock
    return _properties(work.read(properties) + done, _sum(earlier_days, {today: day_work}))


def with_rebuild(properties: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table that tell its work, once that of its rebuild is added. Its bad rows, and by day the bytes of messages, were
    counted when they were read first."""
    total = work.read(properties) + replace(work.read(second), bad={}, unmet={})
    second_days = {day: replace(done, read_bytes=0) for day, done in read(second).items()}
    return _properties(total, _sum(read(properties), second_days))


def _properties(total: Work, days: Mapping[date, DayWork]) -> dict[str, str]:
    kept_days = sorted(days)[-KEPT_DAYS:]
    text = json.dumps({day.isoformat(): astuple(days[day]) for day in kept_days}, separators=(",", ":"))
    return {work.PROPERTY: total.text(), PROPERTY: text}


def _sum(first: Mapping[date, DayWork], second: Mapping[date, DayWork]) -> dict[date, DayWork]:
    return {day: first.get(day, DayWork()) + second.get(day, DayWork()) for day in {*first, *second}}


def _valid(days: Mapping[str, Any]) -> Iterator[tuple[date, DayWork]]:
    """The days that are as they were written: another program may have changed some."""
    for text, numbers in days.items():
        with suppress(ValueError, TypeError):
            if not all(work.is_sum(number, is_fractional=True) for number in numbers):
                continue
            yield date.fromisoformat(text), DayWork(**dict(zip(_NAMES, numbers, strict=False)))
