"""Tasks of a stream beside its turns: it judges alerts, replaces keys that are due, and notes which ones it uses while it waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from framework.core.stream.events import Alerted, Aside, KeysReplaced
from framework.operations.alerts import judge
from framework.operations.keys.due import replace_due
from framework.plan import Plan
from framework.systems import secrets


class AsideObserver:
    """Does something from time to time for the plan that the stream has. `act` returns lines to tell and failures, of which each is told
    once while it lasts."""

    def __init__(
        self, source: str, pause: float, plan: Callable[[], Plan], act: Callable[[Plan], tuple[Sequence[str], Sequence[str]]],
        event: type[Aside],
    ) -> None:  # fmt: skip
        self.source, self.pause = source, pause
        self._plan, self._act, self._event = plan, act, event
        self._failures: tuple[str, ...] = ()

    def observe(self) -> Aside | None:
        told, failed = self._act(self._plan())
        failures = tuple(failed)
        earlier_failures, self._failures = self._failures, failures
        lines = (*told, *(failure for failure in failures if failure not in earlier_failures))
        return self._event(lines) if lines else None


def observers(plan: Callable[[], Plan]) -> tuple[AsideObserver, ...]:
    return (
        AsideObserver("alerts", 15.0, plan, _judge, Alerted),
        AsideObserver("keys", 300.0, plan, _replace, KeysReplaced),
        AsideObserver("uses of keys", 15.0, plan, _look_again, KeysReplaced),
    )


def _judge(plan: Plan) -> tuple[Sequence[str], Sequence[str]]:
    judgement = judge.judge(plan)
    return judgement.told, list(map(str, judgement.failures))


def _look_again(plan: Plan) -> tuple[Sequence[str], Sequence[str]]:
    secrets.look_again(plan.secrets)
    return (), ()


def _replace(plan: Plan) -> tuple[Sequence[str], Sequence[str]]:
    replaced = replace_due(plan)
    return replaced.lines, [*replaced.lasting, *map(str, replaced.failures)]
