"""What a bar in seconds is on this machine at this moment: others may use its cores, and CI's may be slower."""

from __future__ import annotations

import time

_QUIET = 0.05  # seconds that the loop below takes where the bars were set
_SLACK = 2  # the benches measure; a test notices what became twice as slow, and nothing that a busy machine does


def bar(seconds: float) -> float:
    return _SLACK * seconds * max(1.0, _loop() / _QUIET, _loop() / _QUIET)


def _loop() -> float:
    began = time.perf_counter()  # with the time that it waits for a core
    sum(number * number for number in range(1_000_000))
    return time.perf_counter() - began
