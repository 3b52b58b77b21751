"""The seconds of a batch, by phase."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from framework.core.rules.work import Work, bound

START = "start"  # the phase in which Spark starts


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
    def phases(self) -> Mapping[str, float]:
        return dict(self._phases)

    @property
    def seconds(self) -> float:
        """All seconds but those in which Spark started."""
        return sum(seconds for phase, seconds in self._phases.items() if phase != START)

    def timed(self, work: Work) -> Work:
        """The work of a batch with its seconds so far."""
        return replace(work, seconds=self.phases, lasted={bound(self.seconds): work.batches})
