"""The input of a follower: one step of commits, by their rows or by their files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from framework.core.follow.waiting import FollowStep
from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import DataFile, Metadata
from framework.core.sources import changes
from framework.core.sources.changes import NOTHING, RowChanges
from framework.plan import Column, Follower, Pipeline, SecretStore

if TYPE_CHECKING:
    from framework.core.iceberg.lake import TableStore


@dataclass(frozen=True)
class FollowInput:
    """Commits that the follower has not shown yet, up to one of the table's snapshots."""

    pipeline: Pipeline
    follower: Follower
    _: KW_ONLY
    table: Metadata
    step: FollowStep
    lake: Callable[[], TableStore]  # starts Spark
    secrets: SecretStore
    turn: Any = None  # what the follower's `take_turn` returned

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.pipeline.table.readable

    @property
    def until(self) -> int:
        """The number of the last commit."""
        return self.step.commit

    @property
    def is_first(self) -> bool:
        """Whether the follower has shown nothing so far."""
        return self.step.since == NOTHING

    @cached_property
    def changes(self) -> RowChanges:
        """The rows that changed."""
        lake = self.lake()
        table = lake.load(self.pipeline.table.identifier)
        return changes.between(lake, table, self.columns, self.step.since, self.step.until)

    @property
    def grows(self) -> bool:
        """Whether the table's current snapshot continues the one that was shown; it does not after a rollback."""
        return self.is_first or bool(self.changes.files.grows())

    def files(self) -> tuple[DataFile, ...]:
        """All files of the snapshot."""
        return metadata.data_files(self.table, self.table.snapshots[self.step.until])
