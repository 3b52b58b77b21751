"""Parse the five fields of a cron schedule. A schedule that never fires is an error."""

from __future__ import annotations

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 7, _DAYS))
_LONGEST = {month: 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)}
PATTERN = r"^\s*\S+(\s+\S+){4}\s*$(?!\n)"


def read(text: str) -> str:
    """The schedule with single spaces. Raises ValueError for a bad schedule."""
    fields = text.lower().split()
    values = [_values(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    _, _, days, months, _ = values
    # If both the day and the day of the week are given, either one fires; but Dagster refuses a day that no month has even so.
    if not any(day <= _LONGEST[month] for day in days for month in months):
        raise ValueError("a day that no month has")
    return " ".join(fields)


def earliest_in_each_hour(schedule: str) -> str:
    """The schedule with only its first minute in each hour."""
    minutes, *other_fields = schedule.split()
    return " ".join((str(min(_values(minutes, *_FIELDS[0]))), *other_fields))


def an_hour_later(schedule: str) -> str | None:
    """Return the schedule one hour later by the clock; None where it would pass midnight to another of its days."""
    minutes, hours, *days = schedule.split()
    values = sorted(_values(hours, *_FIELDS[1]))
    if 23 in values and any(day != "*" for day in days):
        return None
    return " ".join((minutes, ",".join(str((hour + 1) % 24) for hour in values), *days))


def _values(field: str, low: int, high: int, names: tuple[str, ...]) -> set[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        range_, slash, step = part.partition("/")
        interval = _number(step) if slash else 1
        first_part, dash, last_part = range_.partition("-")
        if range_ == "*":
            begin, end = low, high
        else:
            begin = _number(first_part, names, low)
            end = _number(last_part, names, low) if dash else high if slash else begin
        if interval < 1 or not low <= begin <= end <= high:
            raise ValueError(f"{part} is not within {low} and {high}")
        numbers.update(range(begin, end + 1, interval))
    return numbers


def _number(text: str, names: tuple[str, ...] = (), first_number: int = 0) -> int:
    if text in names:
        return names.index(text) + first_number
    if not text.isascii() or not text.isdigit() or len(text) > 2:
        raise ValueError(f"{text} is not a number")
    return int(text)
