"""Declares a write mode: its part in the plan, and what only the documents need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from framework.base.errors import Problem
from framework.documents.pipeline.written_into import WRITES, Into
from framework.documents.rows import Rows
from framework.plan import Column, Keyed, Topic
from framework.plan.write import Write


def no_problems(_into: Into, _order: str, _topics: tuple[Topic, ...], _rows: Rows) -> Iterable[Problem]:
    return ()


def no_columns(_keyed: Keyed, _columns: Iterable[Column]) -> Iterable[Column]:
    return ()


@dataclass(frozen=True, kw_only=True)
class WriteMode(Write):
    """A write mode. Its file has one as `MODE`. Planning loads the file, so the file must import pyspark inside functions only."""

    does: str  # completes "`upsert` …" in the option's help
    problems: Callable[[Into, str, tuple[Topic, ...], Rows], Iterable[Problem]] = no_problems  # for a mode with `by_key`
    columns: Callable[[Keyed, Iterable[Column]], Iterable[Column]] = no_columns  # added after the steps' columns


@cache
def write_mode(name: str) -> WriteMode:
    """The write mode that `write` of a spec names."""
    mode = WRITES.declared()[name]
    assert isinstance(mode, WriteMode)
    return replace(mode, name=name)
