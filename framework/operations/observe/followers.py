"""The progress of a table's followers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from framework.base.amounts import counted
from framework.core.follow import waiting
from framework.core.iceberg import published
from framework.core.iceberg.metadata import Metadata
from framework.core.rules.journal import FailedRun, RunRecord
from framework.plan import Follower, Pipeline

State = Literal["pending", "connected", "lagging", "failing", "left"]


@dataclass(frozen=True, kw_only=True)
class FollowerState:
    """A follower at one moment: about how many rows, or commits, it has not shown, and its last failure. One that is `left` is no
    longer in the spec."""

    follower: Follower
    state: State
    rows: int
    failed: FailedRun | None

    @property
    def words(self) -> str:
        if self.state == "left":
            return "is still there, and the spec no longer names it"
        waits = self.waiting if self.rows else f"has all {self._thing}s"
        return "nothing was shown yet" if self.state == "pending" else f"{self.state}, {waits}"

    @property
    def waiting(self) -> str:
        return f"{counted(self.rows, self._thing)} wait{'s'[: self.rows == 1]}"

    @property
    def _thing(self) -> str:
        return "commit" if self.follower.latest_only else "row"


def follower_states(pipeline: Pipeline, table: Metadata | None, record: RunRecord) -> Iterator[FollowerState]:
    for former_follower in published.former_followers(pipeline, table.refs) if table else ():
        yield FollowerState(follower=former_follower, state="left", rows=0, failed=None)
    for follower in pipeline.also:
        rows = waiting.rows(table, follower) if table else 0
        waits = table is not None and waiting.step(table, follower) is not None
        failed = record.followers.get(follower.tag) if waits else None
        is_tagged = table is not None and follower.tag in table.refs
        yield FollowerState(follower=follower, state=_state(is_tagged, rows, failed), rows=rows, failed=failed)


def _state(is_tagged: bool, rows: int, failed: FailedRun | None) -> State:
    if failed:
        return "failing"
    if rows:
        return "lagging"
    return "connected" if is_tagged else "pending"
