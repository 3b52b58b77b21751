"""The page that Prometheus reads: the metrics of all tables, collected when somebody asks and held for some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from framework.host.answers import Answer
from framework.host.prometheus.families import families
from framework.operations.metrics import StreamNow
from framework.operations.observe.status import statuses
from framework.plan import Pipeline, Plan

HOLD = 5.0  # seconds
Choose: TypeAlias = Callable[[Plan], Sequence[Pipeline]]


class Page:
    """The page of the tables that `choose` returns of a plan. `stream` tells of the stream in this process, if there is one."""

    def __init__(self, plan: Callable[[], Plan], choose: Choose, stream: Callable[[], StreamNow] | None = None) -> None:
        self._plan, self._choose, self._stream = plan, choose, stream
        self._collected: tuple[Family, ...] = ()
        self._until = 0.0
        # One thread collects for all who ask: it keeps its connections, and nobody collects twice.
        self._collecting = ThreadPoolExecutor(1, "metrics")

    def answer(self, accept: str = "") -> Answer:
        """The page in the form that the asker accepts."""
        encoder, content_type = choose_encoder(accept)
        return Answer(200, encoder(_Collected(self._collecting.submit(self._families).result()).registry()), content_type)

    def _families(self) -> tuple[Family, ...]:
        if time.monotonic() >= self._until:
            plan = self._plan()
            now = statuses(plan, self._choose(plan), maintenance=False)
            self._collected = tuple(families(now, self._stream() if self._stream else None))
            self._until = time.monotonic() + HOLD
        return self._collected


class _Collected(Collector):
    def __init__(self, collected: Iterable[Family]) -> None:
        self._collected = collected

    def collect(self) -> Iterator[Family]:
        yield from self._collected

    def registry(self) -> CollectorRegistry:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry
