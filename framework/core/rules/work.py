"""The work of batches, in sums that only grow: a property of each table, which the commit of a batch sets together with the position.

*Guarantee* Each published batch counts once, whatever dies when and whichever process publishes it. A rollback takes nothing back: the work
was done.
*Limit* Seconds count until a batch is sent to the catalog; how long the commit takes is known only behind it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

PROPERTY = "sluice.work"
BOUNDS = (0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0)  # seconds of batches that are counted apart
ENDLESS = "+Inf"  # in place of a bound, beyond the last one
START = "start"  # the phase in which Spark starts
OTHERS = "others"  # in place of a name, where there are too many of them
_MOST = 50  # names of one sum: a table's metadata, and a metric's labels, must not grow for ever
_GREATEST = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of some batches. `repeats`: how often one was staged again, since another commit came before it."""

    batches: int = 0
    repeats: int = 0
    read: int = 0
    rows: int = 0
    filtered: int = 0
    read_bytes: int = 0  # of keys and values of messages
    files: int = 0
    bytes: int = 0
    objects: int = 0  # that were put into the store: files with rows, lists of files, and metadata
    bad: Mapping[str, int] = field(default_factory=dict)  # by code
    changed: Mapping[str, int] = field(default_factory=dict)  # rows with a key, by what became of them
    unmet: Mapping[str, int] = field(default_factory=dict)  # rows by the expectation that they do not meet
    seconds: Mapping[str, float] = field(default_factory=dict)  # by phase
    lasted: Mapping[str, int] = field(default_factory=dict)  # batches by the least of the bounds that they did not exceed

    def __add__(self, other: Work) -> Work:
        return Work(**{each.name: _sum(getattr(self, each.name), getattr(other, each.name)) for each in fields(Work)})

    @property
    def elapsed(self) -> float:
        """The seconds of the batches without those in which Spark started."""
        return sum(seconds for phase, seconds in self.seconds.items() if phase != START)

    def text(self) -> str:
        sums = {each.name: getattr(self, each.name) for each in fields(Work)}
        return json.dumps({name: value for name, value in sums.items() if value}, separators=(",", ":"))


def read(properties: Mapping[str, str]) -> Work:
    """The work of all batches of a table, by its properties. What cannot be read counts as none: no batch depends on it."""
    with suppress(ValueError, TypeError, OverflowError, RecursionError):
        values = json.loads(properties.get(PROPERTY) or "{}")
        return Work(**{each.name: _valid(each.name, values[each.name]) for each in fields(Work) if each.name in values})
    return Work()


def _valid(name: str, value: Any) -> Any:
    """A sum as it was written. Raises a ValueError for what is none: another program may have changed it."""
    is_of_many = isinstance(getattr(Work(), name), Mapping)
    numbers = value.values() if is_of_many and isinstance(value, Mapping) else [value]
    if isinstance(value, Mapping) != is_of_many or (is_of_many and len(value) > _MOST + 1):
        raise ValueError(f"{name} is no sum")
    if not all(is_sum(number, is_fractional=name == "seconds") for number in numbers):
        raise ValueError(f"{name} is no sum")
    "".join(value if is_of_many else ()).encode()  # a lone surrogate is in no name
    return value


def is_sum(number: Any, is_fractional: bool) -> bool:
    """Whether a number can be a sum."""
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    return (is_whole or (is_fractional and isinstance(number, float))) and 0 <= number <= _GREATEST


def bound(seconds: float) -> str:
    """The name of the least bound that is not exceeded."""
    return next((str(limit) for limit in BOUNDS if seconds <= limit), ENDLESS)


def _sum(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        sums: dict[str, float] = dict(first)
        for name, value in second.items():
            key = name if name in sums or len(sums) < _MOST else OTHERS
            sums[key] = round(sums.get(key, 0) + value, 3)
        return sums
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    raise TypeError(f"{first!r} and {second!r} have no sum")
