"""Waits for a condition, up to a deadline. No test has a fixed pause: it is too short on a busy machine, and too long on any other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], failure: str, seconds: float = 60) -> T:
    """The answer of the condition once it holds."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, failure
        time.sleep(0.02)
    return answer
