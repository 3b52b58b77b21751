"""A list of what runs tell: the smallest watcher."""

from __future__ import annotations

from collections.abc import Callable

from framework.core.run.events import Event

LINES: list[str] = []


def watcher() -> Callable[[Event], None]:
    return lambda event: LINES.append(f"{type(event).__name__} {event.pipeline.name}")
