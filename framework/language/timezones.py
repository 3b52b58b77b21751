"""Names of time zones, such as `Europe/Berlin`, in the options of several documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from zoneinfo import available_timezones

from framework.base.errors import Problem
from framework.base.spelling import did_you_mean
from framework.language.options import OptionGroup

ALSO_CALLED = ["tz", "zone"]


def is_timezone(name: str) -> bool:
    return name in _timezones()


def problems(bound: OptionGroup, timezone: str) -> Iterator[Problem]:
    """A problem with the option `timezone` of these options."""
    if "timezone" not in bound.gaps and not is_timezone(timezone):
        hint = did_you_mean(timezone, _timezones(), "write a name such as `Europe/Berlin` or `UTC`")
        yield Problem(bound.place("timezone"), "bad-timezone", f"there is no time zone `{timezone}`", hint)


@cache
def _timezones() -> frozenset[str]:
    """The names of all time zones, cached because Python searches a tree of folders for them."""
    return frozenset(available_timezones())
