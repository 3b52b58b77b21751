"""What a write mode says of itself: the plan asks the rest of it, the engine its `stage`. The modes are the files of `framework.writes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from framework import components
from framework.errors import Problem
from framework.model import Column, Keyed, Topic
from framework.plan.rows import Rows
from framework.spec import kinds

MODES = "framework.writes"


def no_problems(_into: kinds.Into, _order: str, _topics: tuple[Topic, ...], _rows: Rows) -> Iterable[Problem]:
    return ()


def no_columns(_keyed: Keyed, _columns: Iterable[Column]) -> Iterable[Column]:
    return ()


@dataclass(frozen=True)
class Mode:
    """A write mode, which its file has as `MODE`. A plan loads the file, so pyspark is imported inside functions only."""

    does: str  # completes "`upsert` …" in the option's help
    stage: Callable[[Any, Any], Any]  # writes a Frame's good rows to the branch of a Target, and gives what it Counted
    _: KW_ONLY
    by_key: bool = False  # whether `keys` name a row
    versions: bool = False  # with `by_key`: whether a key can have several rows
    whole: bool = False  # each run computes all rows from another table
    problems: Callable[[kinds.Into, str, tuple[Topic, ...], Rows], Iterable[Problem]] = no_problems  # of a mode by keys
    columns: Callable[[Keyed, Iterable[Column]], Iterable[Column]] = no_columns  # that it adds behind the steps' own
    # What a batch did to rows by their keys: the names in `Changed`, and as Iceberg's summary of a MERGE calls them.
    changes: Mapping[str, str] = field(default_factory=dict)


def mode(name: str) -> Mode:
    found = components.load(MODES, name).MODE
    assert isinstance(found, Mode)
    return found
