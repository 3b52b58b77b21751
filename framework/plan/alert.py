"""Alerts: conditions on tables, and who is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from framework.base.errors import Where
from framework.plan.notice import Notice
from framework.plan.pipeline import Pipeline

Verdict: TypeAlias = str | bool | None
"""Whether a condition holds: in words why it does; False, that it does not; None, that nobody can know now."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A reason why a table does not get its rows. Its message may quote values of rows, unless it is that a system does not answer."""

    code: str
    message: str
    unanswered: bool

    @property
    def words(self) -> str:
        """The reason without values of rows."""
        return f"{self.code}: {self.message}" if self.unanswered else self.code


@dataclass(frozen=True)
class FollowerFacts:
    """The rows, or commits, that a follower has not shown yet, and the snapshot that it has shown."""

    rows: int
    snapshot: int | None


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """A table at one moment, as conditions judge it. What is None is unknown.

    `trouble`: what keeps it from its work; `unanswered`: all of it is that Kafka or the catalog does not answer now. `followers`: those of
    the table, by their titles. `exports`: for how many seconds a file of each export with a schedule has been due. `grown(name, seconds)`:
    how much a sum of its batches has grown in these last seconds. `counted(where, seconds)`: its rows of these last seconds for which a
    condition holds. `lasted(name, holds)`: for how many seconds something has held, each time that it was asked. `keys()`: for how many
    seconds a key may still be used, by the name of its document.
    """

    pipeline: Pipeline
    state: str
    late: bool | None
    commit_age: float | None
    paused_for: float | None
    trouble: tuple[Trouble, ...]
    unanswered: bool
    followers: Mapping[str, FollowerFacts] | None
    exports: Mapping[str, float | None]
    grown: Callable[[str, float], float | None]
    counted: Callable[[str, float], int | None]
    lasted: Callable[[str, bool], float]
    keys: Callable[[], Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition of an alert. `options` are as the file of its type planned them; `window`: the seconds of the past that it needs."""

    type: str
    says: str
    options: Any = None
    window: float = 0.0
    judge: Callable[[Condition, TableFacts], Verdict] = field(compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert on tables. `repeat_every`: seconds after which it is told again while it lasts; None: never."""

    name: str
    environment: str
    where: Where = field(compare=False, repr=False)
    doc: str
    pipelines: tuple[Pipeline, ...]
    conditions: tuple[Condition, ...]
    notices: tuple[Notice, ...]
    repeat_every: int | None
    recovered: bool
