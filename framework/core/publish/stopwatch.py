"""The seconds of a batch, by phase."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds by phase."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def done(self, phase: str) -> None:
        moment = time.perf_counter()
        self._phases[phase] = self._phases.get(phase, 0.0) + moment - self._last
        self._last = moment

    @property
    def phases(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._phases.items())
