"""Followers and maintenance of a stream's tables, in a thread of their own: they hold up no batch of another table.

*Guarantee* A piece of this work that fails is tried again after a growing pause, and the others go on. One follower has the thread for some
seconds at most, however much its table grows meanwhile. A compaction that was undone since a batch changed rows of its files is tried again
while none does.
*Cost* A table without followers is looked at every half a minute while batches come, and every ten minutes else.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

from framework.base.patience import growing
from framework.core.context.context import Context
from framework.core.follow.follow import Followed
from framework.core.run.crew import Crew, Done
from framework.core.run.events import Event, Failed, Maintained
from framework.core.run.run import followed, tend
from framework.core.stream.events import StreamEvent
from framework.plan import AllRows, Pipeline

_FOLLOW, _MAINTAIN, _QUIET = 1.0, 30.0, 600.0  # seconds
_BYTES = 256 << 20  # that are compacted at once, some seconds: batches of the same table may wait for it
_TURN = 10.0  # seconds of a follower that always has more to do
_FIRST, _LONGEST = 2.0, 300.0  # seconds between two tries of what fails
_FOLLOWING, _TENDING = "followers of ", "maintenance of "


@dataclass
class _Chore:
    """A piece of work that comes again and again."""

    pipeline: Pipeline
    due: float
    failures: int = 0  # in a row


class Chores:
    """When each chore is due, and the one that is under way."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.under_way = ""
        self._chores: dict[str, _Chore] = {}
        self._has_failed = False
        self._began = 0.0
        self._told: dict[str, str] = {}

    def take(self, pipelines: Iterable[Pipeline]) -> None:
        """Takes care of these pipelines from now on, and of no others."""
        before, self._chores = self._chores, {}
        for pipeline in pipelines:
            for name in (f"{_FOLLOWING}{pipeline.name}", f"{_TENDING}{pipeline.name}")[not pipeline.also :]:
                due = time.monotonic() + random.uniform(0, _QUIET)
                chore = self._chores[name] = before.get(name) or _Chore(pipeline, due)
                chore.pipeline = pipeline

    def want(self, pipeline: Pipeline) -> None:
        """A batch was published. What failed keeps its pause."""
        for prefix, rest in ((_FOLLOWING, _FOLLOW), (_TENDING, _MAINTAIN)):
            chore = self._chores.get(f"{prefix}{pipeline.name}")
            if chore is not None and not chore.failures:
                chore.due = min(chore.due, time.monotonic() + rest)

    def begin(self, busy: Container[str], is_away: Callable[[Pipeline], bool], stopped: Callable[[], bool]) -> None:
        """Begins the chore that has been due for longest, if none is under way. `busy`: the pipelines that have a turn; `is_away`: whether
        one waits for another system, for which this thread would wait, too."""
        if self.under_way:
            return
        for name, chore in sorted(self._chores.items(), key=lambda item: item[1].due):
            if chore.due > time.monotonic():
                return
            if not is_away(chore.pipeline) and not (self._excludes(name, chore.pipeline) and chore.pipeline.name in busy):
                self.under_way, self._has_failed, self._began = name, False, time.monotonic()
                chore.due = math.inf  # unless a batch comes meanwhile
                self.crew.put(name, self._work(name, chore.pipeline, stopped))
                return

    def _work(self, name: str, pipeline: Pipeline, stopped: Callable[[], bool]) -> Callable[[Context], Iterator[Event]]:
        if name.startswith(_TENDING):
            return lambda context: tend(context, pipeline, _BYTES)
        until = time.monotonic() + _TURN
        return lambda context: followed(context, pipeline, lambda: stopped() or time.monotonic() > until)

    def excludes(self, pipeline: Pipeline) -> bool:
        """Whether the pipeline has no turn, since its files are compacted: a batch that changes their rows would undo that once more."""
        return self.under_way == f"{_TENDING}{pipeline.name}" and self._excludes(self.under_way, pipeline)

    def _excludes(self, name: str, pipeline: Pipeline) -> bool:
        is_undone = name in self._chores and self._chores[name].failures > 0
        return is_undone and name.startswith(_TENDING) and not isinstance(pipeline.table.rule, AllRows)

    def ends(self, done: Done) -> bool:
        """Whether that is the end of a chore; then the next one can begin."""
        if done.name != self.under_way:
            return False
        name, self.under_way = self.under_way, ""
        if (chore := self._chores.get(name)) is not None:
            chore.failures = chore.failures + 1 if self._has_failed or done.error else 0
            rest = growing(chore.failures, _FIRST, _LONGEST) if chore.failures else _QUIET
            if not chore.failures and name.startswith(_FOLLOWING) and time.monotonic() - self._began > _TURN:
                rest = _FOLLOW  # it was not done yet
            chore.due = min(chore.due, time.monotonic() + rest)
        return True

    def hides(self, event: StreamEvent) -> bool:
        """Whether an event is a failure that was told already. Notes failures of chores."""
        if isinstance(event, Maintained):
            self.want(event.pipeline)  # its followers list other files now
            return self._is_told(event.done.identifier, "" if event.done.is_whole else event.done.line)
        if isinstance(event, Followed):
            return self._is_told(f"{event.pipeline.name} {event.follower.tag}", "")
        if isinstance(event, Failed) and event.follower is not None:
            return self._is_told(f"{event.pipeline.name} {event.follower.tag}", str(event.error))
        return False

    def _is_told(self, key: str, failure: str) -> bool:
        """Whether this failure, or none, was told last. Notes a failure of the chore that is under way."""
        self._has_failed |= bool(failure)
        before, self._told[key] = self._told.get(key, ""), failure
        return bool(failure) and before == failure
