"""Parse the five fields of a cron schedule. A schedule that never fires is an error."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 7, _DAYS))
_LONGEST = {month: 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)}
_MOST_DAYS = 8 * 366  # until the next 29th of February
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


def next_after(schedule: str, moment: datetime) -> datetime:
    """The schedule's first time after a moment, in the moment's time zone. A time that the clock leaves out comes an hour later."""
    minutes, hours, *_ = (sorted(_values(field, *bounds)) for field, bounds in zip(schedule.split(), _FIELDS, strict=True))
    for number in range(_MOST_DAYS + 1):
        day = moment.date() + timedelta(days=number)
        if not _is_of(schedule, day):
            continue
        for hour in hours:
            for minute in minutes:
                fires = datetime.combine(day, time(hour, minute), moment.tzinfo).astimezone(timezone.utc)
                if fires > moment:
                    return fires.astimezone(moment.tzinfo)
    raise AssertionError(f"{schedule} never fires")  # which `read` refuses


def _is_of(schedule: str, day: date) -> bool:
    """Whether the schedule fires on a day. If both the day and the day of the week are given, either one is enough, as in Dagster."""
    _, _, *fields = schedule.split()
    days, months, weekdays = (_values(field, *bounds) for field, bounds in zip(fields, _FIELDS[2:], strict=True))
    is_of_month, is_of_week = day.day in days, not weekdays.isdisjoint({day.isoweekday(), day.isoweekday() % 7})
    is_either = len(days) < 31 and len({weekday % 7 for weekday in weekdays}) < 7
    return day.month in months and (is_of_month or is_of_week if is_either else is_of_month and is_of_week)


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
