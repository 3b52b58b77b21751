"""What a bar in seconds is on this machine at this moment: others may use its cores, and CI's may be slower."""

from __future__ import annotations

import time

_QUIET = 0.05  # seconds that the loop below takes where the bars were set


def bar(seconds: float) -> float:
    began = time.process_time()
    sum(number * number for number in range(1_000_000))
    return seconds * max(1.0, (time.process_time() - began) / _QUIET)
