"""The seconds of a batch, by phase."""

from __future__ import annotations

import time
from dataclasses import replace

from framework.core.rules.work import Work, bound


class Stopwatch:
    """Seconds by phase, over all tries of a batch. `repeats`: how often another commit came before one of them."""

    def __init__(self) -> None:
        self.repeats = 0
        self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def done(self, phase: str) -> None:
        moment = time.perf_counter()
        self._phases[phase] = self._phases.get(phase, 0.0) + moment - self._last
        self._last = moment

    def timed(self, work: Work) -> Work:
        """The work of a batch with its seconds and tries so far."""
        work = replace(work, seconds=dict(self._phases), repeats=self.repeats)
        return replace(work, lasted={bound(work.elapsed): work.batches})
