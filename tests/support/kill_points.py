"""Kill points of a batch, and hooks that do something there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framework.core.rules.protocol import KILL_POINTS, UPSERT_POINTS

POINTS = sorted({*KILL_POINTS, *UPSERT_POINTS})


class Died(BaseException):
    """Ends a run like a SIGKILL: no code but a test's catches it."""


def dies_at(point: str) -> Any:
    def die(reached_point: str) -> None:
        if reached_point == point:
            raise Died

    return die


def once(action: Callable[[], Any], point: str) -> Callable[[str], None]:
    """Returns a hook that does something the first time that a kill point is reached."""
    points: list[str] = []

    def at(reached: str) -> None:
        if reached == point and not points:
            points.append(reached)
            action()

    return at
