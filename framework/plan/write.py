"""The declaration of a write mode. The engine calls its `stage`, and the plan uses the rest. The modes are the files of
`framework.features.writes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from framework.base import components
from framework.base.errors import Problem
from framework.documents.rows import Rows
from framework.language import kind as kinds
from framework.plan import Column, Keyed, Topic

MODES = "framework.features.writes"


def no_problems(_into: kinds.Into, _order: str, _topics: tuple[Topic, ...], _rows: Rows) -> Iterable[Problem]:
    return ()


def no_columns(_keyed: Keyed, _columns: Iterable[Column]) -> Iterable[Column]:
    return ()


@dataclass(frozen=True)
class Mode:
    """A write mode. Its file has one as `MODE`. Planning loads the file, so the file must import pyspark inside functions only."""

    does: str  # completes "`upsert` …" in the option's help
    stage: Callable[[Any, Any], Any]  # writes a Frame's good rows to the branch of a Target, and returns the numbers as Counted
    _: KW_ONLY
    keeps_rows: bool = False  # whether each row that lands stays in the table as it is
    by_key: bool = False  # whether `keys` identify a row
    versions: bool = False  # with `by_key`: whether a key can have several rows
    groups: bool = False  # whether a row is a total of many, which new rows change
    whole: bool = False  # each run computes all rows from another table
    problems: Callable[[kinds.Into, str, tuple[Topic, ...], Rows], Iterable[Problem]] = no_problems  # for a mode with `by_key`
    columns: Callable[[Keyed, Iterable[Column]], Iterable[Column]] = no_columns  # added after the steps' columns
    # The numbers of changed rows: names in `Changed`, and their names in Iceberg's summary of a MERGE.
    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows_change(self) -> bool:
        """Whether rows of the table are also changed and deleted."""
        return self.by_key or self.groups or self.whole


def mode(name: str) -> Mode:
    loaded = components.load(MODES, name).MODE
    assert isinstance(loaded, Mode)
    return loaded
