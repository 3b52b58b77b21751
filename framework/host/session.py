"""The context of a plan, which reads and writes its tables for as long as a caller needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from framework.core.context.context import Context
from framework.plan import Pipeline, Plan
from framework.plan.chosen import chosen


@contextmanager
def opened(plan: Plan, name: str) -> Iterator[tuple[Context, Pipeline]]:
    """The pipeline of this name, or the one that writes the table of this name, with its context until the block ends."""
    (pipeline,) = chosen(plan, [name])
    context = Context(plan)
    try:
        yield context, pipeline
    finally:
        context.stop()
