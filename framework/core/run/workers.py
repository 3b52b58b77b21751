"""Pipelines that run at once: each in a thread, with a session of its own in one JVM.

*Guarantee* The events of a pipeline come in their order; those of several come in between each other. A pipeline begins once those have
ended whose tables it reads. Closing the sequence ends each run after the commit that is under way.
*Cost* A session and its connections for each thread, which stay until the workers end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from graphlib import TopologicalSorter

from framework.core.context.context import Context
from framework.core.run.crew import Crew, Done
from framework.core.run.events import Event
from framework.core.run.run import Runs, never, run, run_all
from framework.plan import Pipeline


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


class Workers:
    """Threads that run pipelines."""

    def __init__(self, context: Context, count: int) -> None:
        self._crew = Crew(context, count)

    def run(self, pipelines: Sequence[Pipeline], stopped: Callable[[], bool] = never) -> Iterator[Event]:
        """Runs the pipelines, and yields what happens."""
        by_name = {pipeline.name: pipeline for pipeline in pipelines}
        order = TopologicalSorter({name: pipeline.made_of & by_name.keys() for name, pipeline in by_name.items()})
        order.prepare()
        closed, under_way = threading.Event(), 0

        def is_stopped() -> bool:
            return closed.is_set() or self._crew.is_left or stopped()

        try:
            while order.is_active():
                for name in order.get_ready():
                    self._crew.put(name, partial(_run, pipeline=by_name[name], stopped=is_stopped))
                    under_way += 1
                event = self._crew.events.get()
                if not isinstance(event, Done):
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
            while under_way and not self._crew.is_left:
                under_way -= isinstance(self._crew.events.get(), Done)

    def end(self) -> None:
        """Ends the threads, each after the commit that is under way."""
        self._crew.end()

    def leave(self) -> None:
        """Lets the threads end, and waits for none."""
        self._crew.leave()


def _run(context: Context, pipeline: Pipeline, stopped: Callable[[], bool]) -> Iterator[Event]:
    return run(context, pipeline, stopped) if not stopped() else iter(())
