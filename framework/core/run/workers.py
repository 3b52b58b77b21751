"""Pipelines that run at once: each in a thread, with a session of its own in one JVM.

*Guarantee* The events of a pipeline come in their order; those of several come in between each other. A pipeline begins once those have
ended whose tables it reads. Closing the sequence ends each run after the commit that is under way.
*Cost* A session and its connections for each thread, which stay until the workers end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from queue import Empty, Queue, SimpleQueue

from framework.core.context.context import Context
from framework.core.run.events import Event
from framework.core.run.run import Runs, never, run, run_all
from framework.plan import Pipeline

_EVENTS = 100  # that wait for whoever reads them
_POLL = 0.1  # seconds


@contextmanager
def runs_of(context: Context, count: int) -> Iterator[Runs]:
    """Yields a function that runs pipelines, `count` at once."""
    if count == 1:
        yield lambda pipelines, stopped: run_all(context, pipelines, stopped)
        return
    workers = Workers(context, count)
    try:
        yield workers.run
    except KeyboardInterrupt:
        workers.leave()
        raise
    except BaseException:
        workers.end()
        raise
    workers.end()


@dataclass(frozen=True)
class _Done:
    """The end of one pipeline's run; with the error of a thread that failed over it."""

    name: str
    error: BaseException | None = None


class Workers:
    """Threads that run pipelines."""

    def __init__(self, context: Context, count: int) -> None:
        self._tasks: SimpleQueue[tuple[Pipeline, Callable[[], bool]] | None] = SimpleQueue()
        self._events: Queue[Event | _Done] = Queue(_EVENTS)
        self._left = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(context.sibling(),), name=f"worker {number}", daemon=True)
            for number in range(1, count + 1)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, pipelines: Sequence[Pipeline], stopped: Callable[[], bool] = never) -> Iterator[Event]:
        """Runs the pipelines, and yields what happens."""
        by_name = {pipeline.name: pipeline for pipeline in pipelines}
        order = TopologicalSorter({name: pipeline.made_of & by_name.keys() for name, pipeline in by_name.items()})
        order.prepare()
        closed, under_way = threading.Event(), 0

        def is_stopped() -> bool:
            return closed.is_set() or self._left.is_set() or stopped()

        try:
            while order.is_active():
                for name in order.get_ready():
                    self._tasks.put((by_name[name], is_stopped))
                    under_way += 1
                event = self._events.get()
                if not isinstance(event, _Done):
                    yield event
                    continue
                under_way -= 1
                order.done(event.name)
                if event.error is not None:
                    raise event.error
        except KeyboardInterrupt:  # the second Ctrl-C: nothing is waited for
            self.leave()
            raise
        finally:
            closed.set()
            while under_way and not self._left.is_set():
                under_way -= isinstance(self._events.get(), _Done)

    def _work(self, context: Context) -> None:
        try:
            while (task := self._tasks.get()) is not None:
                self._run(context, *task)
        finally:
            context.stop()

    def _run(self, context: Context, pipeline: Pipeline, stopped: Callable[[], bool]) -> None:
        error = None
        try:
            for event in run(context, pipeline, stopped) if not stopped() else ():
                self._events.put(event)
        except BaseException as defect:
            error = defect
        self._events.put(_Done(pipeline.name, error))

    def end(self) -> None:
        """Ends the threads, each after the commit that is under way."""
        self.leave()
        for thread in self._threads:
            while thread.is_alive():
                with suppress(Empty):
                    self._events.get(timeout=_POLL)  # else a thread could wait until somebody reads its events

    def leave(self) -> None:
        """Lets the threads end, and waits for none."""
        self._left.set()
        for _ in self._threads:
            self._tasks.put(None)
