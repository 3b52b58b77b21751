"""Pauses of those who failed, by name: the time until which one rests, and how often it failed in a row. They can be kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TypeAlias

from framework.base.patience import growing

Pauses: TypeAlias = MutableMapping[str, tuple[float, int]]


def note_failure(pauses: Pauses, name: str, time: float, first: float, longest: float) -> None:
    """Notes that somebody failed, who rests, each time for longer."""
    _, failures = pauses.get(name, (0.0, 0))
    pauses[name] = time + growing(failures + 1, first, longest), failures + 1


def rests(pauses: Mapping[str, tuple[float, int]], name: str, time: float, longest: float) -> bool:
    """Whether somebody who failed is not tried again yet. A clock that went back is not waited for."""
    until, _ = pauses.get(name, (0.0, 0))
    return time < until <= time + longest
