"""Watchers: what is told each event of a run, beside the command or the step that runs it. One file each with a function `watcher`, which
returns a function of an event, or None where nothing is to be told.

*Guarantee* No watcher stops a run, and Ended is told also where the run is left before its end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Full, Queue
from typing import TypeAlias, TypeVar

from framework.base.components import components_in
from framework.core.run.events import Began, Ended, Event
from framework.plan import Pipeline

WATCHERS = components_in(__name__)
_LOG = logging.getLogger("sluice.watchers")
Watcher: TypeAlias = Callable[[Event], None]
_MOST = 10_000  # events that a slow watcher has yet to be told
Told = TypeVar("Told")


def with_watchers(events: Iterable[Told], apart: bool = False) -> Iterator[Told]:
    """The events, each told to all watchers before it is handed on. More than those of runs is only handed on. With `apart`, watchers are
    told in a thread of their own: one that waits for its receiver holds up nothing, and misses what is too much for it."""
    tell = _apart() if apart else partial(_tell, _watchers())
    under_way: dict[str, Pipeline] = {}
    try:
        for event in events:
            if isinstance(event, Began):
                under_way[event.pipeline.name] = event.pipeline
            elif isinstance(event, Ended):
                under_way.pop(event.pipeline.name, None)
            if isinstance(event, Event):
                tell(event)
            yield event
    finally:
        for pipeline in under_way.values():  # the run is stopped between two events, or by Ctrl-C or Dagster inside of one
            tell(Ended(pipeline))


def _apart() -> Watcher:
    watchers, events = _watchers(), Queue[Event](_MOST)

    def read() -> None:
        while True:
            _tell(watchers, events.get())

    if watchers:
        threading.Thread(target=read, name="watchers", daemon=True).start()

    def tell(event: Event) -> None:
        with suppress(Full):
            events.put_nowait(event)

    return tell if watchers else lambda _: None


def _watchers() -> Sequence[Watcher]:
    candidates = (module.watcher() for module in WATCHERS.load_all().values())
    return tuple(watcher for watcher in candidates if watcher is not None)


def _tell(watchers: Sequence[Watcher], event: Event) -> None:
    for watcher in watchers:
        try:
            watcher(event)
        except Exception as error:
            _LOG.warning("a watcher of runs failed over %s: %s", type(event).__name__, error)
