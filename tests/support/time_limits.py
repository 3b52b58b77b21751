"""Bars of seconds, which only `make test-long` checks (`-m timed`): a busy machine fails no change."""

from __future__ import annotations

import math
import os
import time

_LOOKED_AT = "SLUICE_BARS" in os.environ
_QUIET = 0.05  # seconds that the loop below takes where the bars were set
_SLACK = 2  # the benches measure; a test notices what became twice as slow


def bar(seconds: float) -> float:
    """The allowed seconds at the current speed of this machine."""
    return _SLACK * seconds * max(1.0, _loop() / _QUIET, _loop() / _QUIET) if _LOOKED_AT else math.inf


def _loop() -> float:
    start_time = time.perf_counter()  # with the time that it waits for a core
    sum(number * number for number in range(1_000_000))
    return time.perf_counter() - start_time
