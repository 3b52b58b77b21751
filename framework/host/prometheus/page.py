"""The page that Prometheus reads: the metrics of all tables, collected when somebody asks and held for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from queue import Queue
from typing import TypeAlias

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from framework.base.clock import utc_now
from framework.host.answers import Answer
from framework.host.prometheus.families import families
from framework.operations.metrics import StreamNow
from framework.operations.observe.status import statuses
from framework.operations.observe.waiting_times import WaitingTimes
from framework.plan import Pipeline, Plan

HOLD = 5.0  # seconds
Choose: TypeAlias = Callable[[Plan], Sequence[Pipeline]]


class Page:
    """The page of the tables that `choose` returns of a plan. `stream` tells of the stream in this process, if there is one."""

    def __init__(self, plan: Callable[[], Plan], choose: Choose, stream: Callable[[], StreamNow] | None = None) -> None:
        self._plan, self._choose, self._stream = plan, choose, stream
        self._collected: tuple[Family, ...] = ()
        self._until = 0.0
        self._waiting_times = WaitingTimes()
        # One thread collects for all who ask: it keeps its connections, and nobody collects twice. No process waits for it at its end.
        self._asked: Queue[Future[tuple[Family, ...]]] = Queue()
        threading.Thread(target=self._collect, name="metrics", daemon=True).start()

    def answer(self, accept: str = "") -> Answer:
        """The page in the form that the asker accepts."""
        encoder, content_type = choose_encoder(accept)
        future: Future[tuple[Family, ...]] = Future()
        self._asked.put(future)
        return Answer(200, encoder(_Collected(future.result())), content_type)

    def _collect(self) -> None:
        while True:
            future = self._asked.get()
            try:
                future.set_result(self._families())
            except BaseException as error:  # raised again where somebody asks
                future.set_exception(error)

    def _families(self) -> tuple[Family, ...]:
        if time.monotonic() >= self._until:
            plan = self._plan()
            now = tuple(map(self._waiting_times.noted, statuses(plan, self._choose(plan), maintenance=False)))
            self._waiting_times.forget(utc_now())
            self._collected = tuple(families(now, self._stream() if self._stream else None))
            self._until = time.monotonic() + HOLD
        return self._collected


class _Collected(Collector):
    """Families that were collected, as the library asks for them."""

    def __init__(self, collected: Iterable[Family]) -> None:
        self._collected = collected

    def collect(self) -> Iterable[Family]:
        return self._collected
