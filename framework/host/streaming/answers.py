"""The pages of a stream over HTTP: `/healthz` says whether its process turns, `/readyz` whether it can do all it should, `/metrics` has its
numbers and those of its tables.

The first two are 200 or 503, with JSON that says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from framework.core.context.context import Context
from framework.core.stream.health import Health
from framework.host.answers import Answer, Pages, as_json
from framework.host.prometheus.page import Choose, Page
from framework.operations.metrics import StreamNow


def pages(context: Context, choose: Choose, health: Callable[[], Health]) -> Pages:
    """The pages of a stream that runs in this context, with the metrics of the tables that `choose` returns of its plan."""

    def alive(_accept: str) -> Answer:
        current = health()
        return as_json(200 if current.lives else 503, {"idle": round(current.idle, 1)})

    def ready(_accept: str) -> Answer:
        current = health()
        return as_json(200 if current.is_ready else 503, asdict(current))

    metrics = Page(lambda: context.plan, choose, lambda: StreamNow(health(), context.memory()))
    return {"/healthz": alive, "/readyz": ready, "/metrics": metrics.answer}
