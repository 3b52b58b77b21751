"""When each pipeline of a stream has its next turn.

*Guarantee* A pipeline has one turn at a time. Of those that are due, the one comes first whose last turn ended longest ago: one with a
backlog takes turns with the others. One that fails waits longer each time, and at most five minutes.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from framework.base.clock import Clock, utc_now
from framework.base.errors import SluiceError
from framework.base.patience import growing
from framework.language import cron
from framework.plan import Pipeline

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures
_SOON = 1.0  # seconds between two turns of a pipeline that runs whenever there is something
_LEAST = 0.1  # the same if no other pipeline has had one in the meantime


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A pipeline in the schedule. `due` is in seconds of a clock that never steps, and `fires` the next time of a cron schedule."""

    pipeline: Pipeline
    due: float
    fires: datetime | None = None
    has_rest: bool = False  # the last turn ended with something left, or failed
    has_news: bool = False  # something happened that no look at the source shows
    is_woken: bool = False  # and it does not wait for its time
    began: float = -math.inf
    ended: float = -math.inf
    failures: int = 0  # in a row
    error: SluiceError | None = None


class Schedule:
    """The turns of pipelines. Not for several threads."""

    def __init__(
        self,
        pipelines: Iterable[Pipeline],
        now: Callable[[], float] = time.monotonic,
        clock: Clock = utc_now,
        chance: random.Random | None = None,
    ) -> None:
        self._now, self._clock, self._chance = now, clock, chance or random.Random()
        self._slots: dict[str, Slot] = {}
        self.under_way: set[str] = set()  # also pipelines that are gone meanwhile
        self.take(pipelines)

    def take(self, pipelines: Iterable[Pipeline]) -> None:
        """Takes over the pipelines of another plan. One that is not new keeps its time, unless it runs at other times now."""
        slots = {}
        for pipeline in pipelines:
            slot = self._slots.get(pipeline.name)
            if slot is None or slot.pipeline.run != pipeline.run:
                slot = Slot(pipeline=pipeline, due=self._now(), fires=self._fires(pipeline))
            slots[pipeline.name] = replace(slot, pipeline=pipeline)
        self._slots = slots

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def __getitem__(self, name: str) -> Slot:
        return self._slots[name]

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def runs(self, name: str) -> bool:
        return name in self.under_way

    def ready(self) -> list[Pipeline]:
        """The pipelines whose time has come, in the order of their turns."""
        due_slots = [slot for slot in self if not self.runs(slot.pipeline.name) and self._is_due(slot)]
        return [slot.pipeline for slot in sorted(due_slots, key=lambda slot: slot.ended)]

    def alone(self) -> list[Pipeline]:
        """The pipeline that runs on new data and may have a turn before its time, since no other one has had any for a second."""
        recent = [slot for slot in self if slot.ended > self._now() - _SOON]
        is_quiet = not self.under_way and len(recent) == 1
        return [slot.pipeline for slot in recent if is_quiet and self._may_begin_early(slot)]

    def _may_begin_early(self, slot: Slot) -> bool:
        return slot.pipeline.run.on_new_data and not slot.failures and slot.ended + _LEAST <= self._now()

    def _is_due(self, slot: Slot) -> bool:
        return slot.due <= self._now() and (slot.fires is None or slot.has_rest or slot.fires <= self._clock())

    def began(self, name: str) -> None:
        self.under_way.add(name)
        self._change(name, began=self._now(), has_rest=False, has_news=False, is_woken=False)

    def ended(self, name: str, has_rest: bool = False) -> None:
        """A turn ended well. With `has_rest` the next one is as soon as the others had theirs."""
        self.under_way.discard(name)
        if name in self:
            pipeline, began = self[name].pipeline, self[name].began
            due = self._now() if has_rest or self[name].is_woken else max(self._now(), began + _every(pipeline))
            self._change(
                name, has_rest=has_rest, ended=self._now(), due=due, fires=self._fires(pipeline), failures=0, error=None
            )  # fmt: skip

    def failed(self, name: str, error: SluiceError, longest: float = LONGEST_PAUSE) -> float:
        """A turn failed. Returns for how many seconds the pipeline rests, which are at most `longest`."""
        self.under_way.discard(name)
        failures = self[name].failures + 1
        pause = growing(failures, FIRST_PAUSE, longest) * self._chance.uniform(0.5, 1.0)
        self._change(
            name, has_rest=True, ended=self._now(), due=self._now() + pause, failures=failures, error=error
        )  # fmt: skip
        return pause

    def paused(self, name: str, reason: SluiceError) -> None:
        """A person paused the pipeline. It goes on where it was; with a cron schedule, at its time."""
        self.under_way.discard(name)
        has_rest = self[name].fires is None or self[name].has_rest
        self._change(name, has_rest=has_rest, ended=self._now(), due=self._now() + _SOON, error=reason)

    def note(self, name: str) -> None:
        """Something happened that the pipeline may wait for; it has its turn when its time comes. One that is under way may not have
        seen it."""
        if name in self:
            self._change(name, has_news=True)

    def wake(self, name: str) -> None:
        """A pipeline that rested can go on now."""
        if name in self:
            self._change(name, due=self._now(), has_news=True, is_woken=True)

    def proved(self, name: str) -> None:
        """A batch was published in the turn that is under way."""
        if self[name].failures:
            self._change(name, failures=0)

    def fill(self, name: str) -> None:
        """Much waits for the pipeline: it has its turn before its time, with a cron schedule too."""
        self._change(name, due=self._now(), has_rest=True)

    def rest(self) -> float:
        """The seconds until another pipeline is due. Those that are due already wait for something else: for news, or for a thread."""
        seconds = [max(slot.due - self._now(), self._until(slot)) for slot in self if not self.runs(slot.pipeline.name)]
        return min((each for each in seconds if each > 0), default=math.inf)

    def _until(self, slot: Slot) -> float:
        return 0.0 if slot.fires is None or slot.has_rest else (slot.fires - self._clock()).total_seconds()

    def _fires(self, pipeline: Pipeline) -> datetime | None:
        if pipeline.run.cron is None:
            return None
        return cron.next_after(pipeline.run.cron, self._clock().astimezone(ZoneInfo(pipeline.run.timezone)))

    def _change(self, name: str, **fields: object) -> None:
        self._slots[name] = replace(self._slots[name], **fields)  # type: ignore[arg-type]


def _every(pipeline: Pipeline) -> float:
    """The seconds between the beginnings of two turns."""
    return _SOON if pipeline.run.on_new_data else pipeline.run.every or _SOON
