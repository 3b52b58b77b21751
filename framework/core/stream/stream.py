"""A stream: pipelines take turns in threads, as soon as something waits and their time has come.

*Guarantee* No pipeline holds up another one for longer than a turn: a batch has at most as many messages as one loads in about a second,
followers and maintenance have a thread of their own, and whoever fails waits by itself. Each turn is a run: what dies with the process was
published, or never was.
*Cost* A look at all topics a few times a second. A pipeline for which nothing waits costs nothing else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, Queue
from typing import TypeAlias

from framework.base.errors import SetupError, SpecError
from framework.core.context.context import Context
from framework.core.run.crew import Crew, Done
from framework.core.run.events import BatchDone, Event, Failed, LeftOut
from framework.core.run.run import never, turn
from framework.core.stream.chores import Chores
from framework.core.stream.events import Aside, NotTaken, Started, StreamEvent, Unseen
from framework.core.stream.health import Health
from framework.core.stream.marks import Full, PipelineRecords, SourceMarks
from framework.core.stream.news import Observer
from framework.core.stream.turns import TURN, Turns
from framework.core.stream.watch import Changes, Watch
from framework.plan import Pipeline, Plan

_PATIENCE = 5.0  # seconds for the turns that are under way at the end
_LONGEST = 0.5  # seconds without a look at the schedule

Choose: TypeAlias = Callable[[Plan], Sequence[Pipeline]]
"""Chooses the pipelines of a plan that a stream runs."""
Item: TypeAlias = Event | Done | SourceMarks | PipelineRecords | Full | Plan | SpecError | Unseen | Aside | None
"""What turns, chores and looks put into the queue of a stream."""


class Stream:
    """Keeps tables behind their topics until it is stopped."""

    def __init__(
        self, context: Context, choose: Choose, workers: int, changes: Changes = lambda: None, observers: Iterable[Observer] = ()
    ) -> None:
        """A stream in a context. `observers` look at other things beside it, and return events to tell."""
        pipelines = choose(context.plan)
        self._context, self._choose, self._changes = context, choose, changes
        self._inbox: Queue[Item] = Queue(100)
        self._turns = Turns(pipelines)
        self._crew = Crew(context, workers, self._inbox)
        self._chores = Chores(Crew(context, 1, self._inbox, "chores"))
        self._watch = Watch(self._inbox, context, self._turns.pipelines, observers)
        self._free, self._most_doubtful = workers, max(1, workers - 1)
        self._ended = threading.Event()
        self._stopped: Callable[[], bool] = never
        self._problems = ""  # of specs that were not taken over
        self._turned = time.monotonic()

    def events(self, stopped: Callable[[], bool], turned: Callable[[], object] = never) -> Iterator[StreamEvent]:
        """Runs pipelines until the function returns true, and yields what happens. At the end, turns that are under way are waited for.
        `turned` is called a few times each second."""
        self._stopped = stopped
        self._watch.begin(self._changes)
        yield Started(tuple(pipeline.name for pipeline in self._turns.pipelines()))
        try:
            while not stopped():
                self._turned = time.monotonic()
                turned()
                self._begin()
                with suppress(Empty):
                    yield from self._taken(self._inbox.get(timeout=min(_LONGEST, max(0.01, self._turns.schedule.rest()))))
            turned()
            yield from self._rest()
        finally:
            self._ended.set()
            self._watch.end()
            for crew in (self._crew, self._chores.crew):
                crew.leave()

    def health(self) -> Health:
        """The state of the stream, which any thread may ask for."""
        return Health(
            idle=time.monotonic() - min(self._turned, self._watch.looked),
            away=tuple(outage.error.message for outage in self._turns.outages),
            problems="\n".join(filter(None, (self._problems, *self._watch.troubles.values()))),
            has_seen=self._watch.has_seen,
            pipelines=self._turns.health(),
        )

    def _begin(self) -> None:
        """Begins the turns for which there is something to do, as far as threads are free."""
        self._chores.begin(self._turns.schedule.under_way, self._turns.is_away, self._is_stopping)
        ready = [pipeline for pipeline in self._turns.ready(self._most_doubtful) if not self._chores.excludes(pipeline)]
        for pipeline in ready[: self._free]:
            self._crew.put(pipeline.name, partial(self._turn, self._turns.begin(pipeline)))
        self._free -= min(self._free, len(ready))

    def _is_stopping(self) -> bool:
        return self._ended.is_set() or self._stopped()

    def _turn(self, pipeline: Pipeline, context: Context) -> Iterator[Event]:
        """One turn, in a thread of its own: it ends behind the batch with which it has caught up, or took long enough."""
        until = time.monotonic() + TURN
        return turn(context, pipeline, self._is_stopping, lambda batch: not batch.waiting or time.monotonic() > until)

    def _taken(self, item: Item) -> Iterator[StreamEvent]:
        match item:
            case None:
                pass
            case SourceMarks():
                yield from self._turns.saw(item)
            case Full(names):
                self._turns.filled(names)
            case PipelineRecords():
                yield from self._turns.noted(item)
                self._chores.take(self._turns.own())
            case Plan():
                yield from self._changed(item)
            case SpecError():
                self._problems = str(item)
                yield NotTaken(item)
            case Done():
                if not self._chores.ends(item):
                    self._free += 1
                    yield from self._turns.ended(item)
            case _:
                yield from self._happened(item)

    def _happened(self, event: Event | Unseen | Aside) -> Iterator[StreamEvent]:
        match event:
            case Failed(pipeline, error, None):
                self._turns.failed(pipeline, error)
            case LeftOut(pipeline, reason):
                self._turns.failed(pipeline, reason)
                if not self._turns.tells(pipeline, reason):
                    return
            case BatchDone():
                yield from self._turns.took(event)
                self._chores.want(event.pipeline)
        if not self._chores.hides(event):
            yield event

    def _changed(self, plan: Plan) -> Iterator[StreamEvent]:
        """Takes over another plan. Turns that are under way end with the one they began with."""
        pipelines = self._choose(plan)
        try:
            self._context.take(plan)
        except SetupError as error:
            self._problems = str(error)
            yield NotTaken(error)
            return
        self._problems = ""
        yield self._turns.changed(pipelines)
        self._watch.follow()

    def _rest(self) -> Iterator[StreamEvent]:
        """Waits for what is under way, and yields what happens meanwhile."""
        self._ended.set()
        until = time.monotonic() + _PATIENCE
        while (self._turns.schedule.under_way or self._chores.under_way) and time.monotonic() < until:
            with suppress(Empty):
                yield from self._taken(self._inbox.get(timeout=0.1))
