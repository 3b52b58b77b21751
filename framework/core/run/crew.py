"""Threads that work on pipelines, each with a session of its own in one JVM, and the events of all of them in one queue.

*Guarantee* The events of one piece of work come in their order; those of several come in between each other. Its end comes last.
*Cost* A session and its connections for each thread, which stay until the crew ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue, SimpleQueue
from typing import Any, TypeAlias

from framework.core.context.context import Context
from framework.core.run.events import Event
from framework.core.schemas.schema_lookup import LiveSchemas

_EVENTS = 100  # that wait for whoever reads them
_POLL = 0.1  # seconds

Work: TypeAlias = Callable[[Context], Iterable[Event]]


@dataclass(frozen=True)
class Done:
    """The end of a piece of work; with the error of a thread that failed over it."""

    name: str
    error: BaseException | None = None


class Crew:
    """Threads that take work one after another. `is_left` says that they are to end."""

    def __init__(self, context: Context, count: int, events: Queue[Any] | None = None, name: str = "worker") -> None:
        self._context = context
        self._work: SimpleQueue[tuple[str, Work, LiveSchemas] | None] = SimpleQueue()
        self.events: Queue[Any] = Queue(_EVENTS) if events is None else events
        self._left = threading.Event()
        self._threads = [
            threading.Thread(target=self._take, name=f"{name} {number}", daemon=True) for number in range(1, count + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_left(self) -> bool:
        return self._left.is_set()

    def put(self, name: str, work: Work) -> None:
        """Lets one of the threads do the work, by the plan that the context has now."""
        self._work.put((name, work, self._context.schemas))

    def _take(self) -> None:
        context: Context | None = None
        try:
            while (task := self._work.get()) is not None:
                name, work, schemas = task
                error = None
                try:
                    context = self._current(context, schemas)
                    for event in work(context):
                        self.events.put(event)
                except BaseException as defect:
                    error = defect
                self.events.put(Done(name, error))
        finally:
            if context is not None:
                context.stop()

    def _current(self, context: Context | None, schemas: LiveSchemas) -> Context:
        """The thread's context, or another one if another plan was taken over meanwhile."""
        if context is not None and context.schemas is schemas:
            return context
        if context is not None:
            context.stop()
        return self._context.sibling(schemas)

    def end(self) -> None:
        """Ends the threads, each after the work that is under way."""
        self.leave()
        for thread in self._threads:
            while thread.is_alive():
                with suppress(Empty):
                    self.events.get(timeout=_POLL)  # else a thread could wait until somebody reads its events

    def leave(self) -> None:
        """Lets the threads end, and waits for none."""
        self._left.set()
        for _ in self._threads:
            self._work.put(None)
