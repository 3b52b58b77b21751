"""Systems that do not answer. One of those who need one tries again, and the others wait for it.

*Guarantee* An outage is told once when it begins and once when it ends, however many pipelines it stops, and ends by itself. Nobody is
held for ever by what is away for somebody else only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from framework.base.errors import UnreachableError

_HELD, _BETWEEN = 60.0, 10.0  # seconds


@dataclass(kw_only=True)
class Outage:
    """A system that does not answer. `tries`: who asks it again, a pipeline or the look at a source; the others are held."""

    error: UnreachableError
    since: float
    tries: str
    held: dict[str, float] = field(default_factory=dict)  # until when: then one after another tries, too
    next_try: float = 0.0  # by one of them


class Outages:
    """The outages of one stream, by the systems that their errors name."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._by_system: dict[str, Outage] = {}

    def __iter__(self) -> Iterator[Outage]:
        return iter(list(self._by_system.values()))

    def seconds(self, outage: Outage) -> float:
        return self._now() - outage.since

    def failed(self, name: str, error: UnreachableError) -> tuple[bool, list[str]]:
        """An error stopped a pipeline, or a look at a source. Returns whether it is of a new outage, and who tries others now: each waits
        for one system alone, so that no two outages wait for each other."""
        system = error.system
        successors = self.left(name, but=system)
        outage = self._by_system.get(system)
        if outage is None:
            self._by_system[system] = Outage(error=error, since=self._now(), tries=name)
        elif outage.tries != name:
            if name in outage.held:
                outage.next_try = self._now() + _BETWEEN
            outage.held[name] = self._now() + _HELD
        return outage is None, successors

    def went_well(self, name: str) -> list[Outage]:
        """The outages that are over, since whoever tried went well."""
        over = [outage for outage in self if outage.tries == name]
        for outage in over:
            del self._by_system[outage.error.system]
        for outage in self:
            outage.held.pop(name, None)
        return over

    def left(self, name: str, but: str = "") -> list[str]:
        """Lets others try where somebody no longer does: it is gone, paused, or failed for another reason. Returns who tries now."""
        successors = []
        for system, outage in list(self._by_system.items()):
            if system == but:
                continue
            outage.held.pop(name, None)
            if outage.tries == name and outage.held:
                outage.tries, _ = outage.held.popitem()
                successors.append(outage.tries)
            elif outage.tries == name:
                del self._by_system[system]
        return successors

    def holds(self, name: str) -> bool:
        """Whether somebody waits for another one to try. One after another of those that were held for long may try, in case the system
        is away for the other one only."""
        return any(name in outage.held and not self._may_try(name, outage) for outage in self)

    def _may_try(self, name: str, outage: Outage) -> bool:
        until, first_name = min((until, held_name) for held_name, until in outage.held.items())
        return name == first_name and max(until, outage.next_try) <= self._now()

    def concern(self, names: Iterable[str]) -> bool:
        """Whether one of them, a pipeline or what it reads, waits for a system."""
        return any(outage.tries in names or not outage.held.keys().isdisjoint(names) for outage in self)
