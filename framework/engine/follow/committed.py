"""What a follower is given: the rows of one step of commits."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from framework.engine.feed.changes import Changes
from framework.model import Column, Follower, Pipeline, SecretStore


@dataclass(frozen=True)
class Committed:
    """Rows of commits that the follower has not shown yet. `first`: it has shown none so far."""

    pipeline: Pipeline
    follower: Follower
    _: KW_ONLY
    changes: Changes
    until: int  # the number of the last commit of the step
    table_id: str
    first: bool
    secrets: SecretStore

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.pipeline.table.columns
