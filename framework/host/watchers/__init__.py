"""Watchers: what is told each event of a run, beside the command or the step that runs it. One file each with a function `watcher`, which
returns a function of an event, or None where nothing is to be told.

*Guarantee* No watcher stops a run, and Ended is told also where the run is left before its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from framework.base.components import components_in
from framework.core.run.events import Began, Ended, Event
from framework.plan import Pipeline

WATCHERS = components_in(__name__)
_LOG = logging.getLogger("sluice.watchers")
Watcher: TypeAlias = Callable[[Event], None]


def with_watchers(events: Iterable[Event]) -> Iterator[Event]:
    """The events, each told to all watchers before it is handed on."""
    watchers = _watchers()
    under_way: dict[str, Pipeline] = {}
    try:
        for event in events:
            if isinstance(event, Began):
                under_way[event.pipeline.name] = event.pipeline
            elif isinstance(event, Ended):
                under_way.pop(event.pipeline.name, None)
            _tell(watchers, event)
            yield event
    finally:
        for pipeline in under_way.values():  # the run is stopped between two events, or by Ctrl-C or Dagster inside of one
            _tell(watchers, Ended(pipeline))


def _watchers() -> Sequence[Watcher]:
    candidates = (module.watcher() for module in WATCHERS.load_all().values())
    return tuple(watcher for watcher in candidates if watcher is not None)


def _tell(watchers: Sequence[Watcher], event: Event) -> None:
    for watcher in watchers:
        try:
            watcher(event)
        except Exception as error:
            _LOG.warning("a watcher of runs failed over %s: %s", type(event).__name__, error)
