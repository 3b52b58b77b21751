"""The looks of a stream, each in a thread of its own: a cluster or a catalog that does not answer delays no other one, and no turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import Queue
from typing import Any, TypeAlias

from framework.base.errors import SpecError
from framework.core.context.context import Context
from framework.core.spark import defects
from framework.core.stream.events import Unseen
from framework.core.stream.marks import sources
from framework.core.stream.news import FillObserver, Observer, Pipelines, RecordObserver, observer_of
from framework.plan import Plan

_LEAST = 0.05  # seconds between two looks, however long one takes
_SPECS = 1.0

Changes: TypeAlias = Callable[[], Plan | SpecError | None]
"""The plan of specs that have changed, or their problems."""


class _SpecObserver:
    def __init__(self, changes: Changes) -> None:
        self.source, self.pause, self.observe = "specs", _SPECS, changes


class Watch:
    """Begins looks, and puts what they find into the stream's queue. `troubles`: why some could not look, by what they look at."""

    def __init__(self, inbox: Queue[Any], context: Context, pipelines: Pipelines, others: Iterable[Observer] = ()) -> None:
        self.troubles: dict[str, str] = {}
        self._inbox, self._context, self._pipelines = inbox, context, pipelines
        self._others = tuple(others)
        self._ended = threading.Event()
        self._begun: set[str] = set()
        self._waited_for: set[str] = set()  # that have not looked yet
        self.looked = time.monotonic()  # when records were read last, for which nobody else is asked

    def begin(self, changes: Changes) -> None:
        for observer in (_SpecObserver(changes), RecordObserver(self._pipelines), FillObserver(self._context, self._pipelines)):
            self._begin(observer)
        for other in self._others:
            self._begin(other)
            self._waited_for.discard(other.source)  # no turn depends on it
        self.follow()

    def follow(self) -> None:
        """Looks from now on at all that the pipelines read. What nobody reads any more is looked at without a question to anybody."""
        for source in sorted({source for pipeline in self._pipelines() for source in sources(pipeline)} - self._begun):
            self._begin(observer_of(source, self._context, self._pipelines))

    @property
    def has_seen(self) -> bool:
        """Whether everything was looked at once."""
        return bool(self._begun) and not self._waited_for

    def end(self) -> None:
        self._ended.set()

    def _begin(self, observer: Observer) -> None:
        self._begun.add(observer.source)
        self._waited_for.add(observer.source)
        threading.Thread(target=self._watch, args=(observer,), name=observer.source, daemon=True).start()

    def _watch(self, observer: Observer) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self._inbox.put(self._news(observer))
            self._waited_for.discard(observer.source)
            if observer.source == RecordObserver.source:
                self.looked = time.monotonic()
            self._ended.wait(max(_LEAST, observer.pause - (time.monotonic() - began)))
        if isinstance(observer, RecordObserver):
            observer.leave()

    def _news(self, observer: Observer) -> object | None:
        try:
            news = observer.observe()
        except Exception as defect:  # a thread that ends looks no more
            error = defects.as_sluice_error("stream", defect)
            is_told, self.troubles[observer.source] = self.troubles.get(observer.source) == str(error), str(error)
            return None if is_told else Unseen(error)
        self.troubles.pop(observer.source, None)
        return news
