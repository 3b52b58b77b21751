"""Alerts that a stream judges, beside its turns."""

from __future__ import annotations

from collections.abc import Callable

from framework.core.stream.events import Alerted
from framework.operations.alerts import judge
from framework.plan import Plan


class AlertObserver:
    """Judges the alerts of the plan that a stream has, and says who was told. A failure is said once while it lasts."""

    source, pause = "alerts", 15.0

    def __init__(self, plan: Callable[[], Plan]) -> None:
        self._plan = plan
        self._failures: tuple[str, ...] = ()

    def observe(self) -> Alerted | None:
        judgement = judge.judge(self._plan())
        failures = tuple(map(str, judgement.failures))
        earlier_failures, self._failures = self._failures, failures
        lines = (*judgement.told, *(failure for failure in failures if failure not in earlier_failures))
        return Alerted(lines) if lines else None
