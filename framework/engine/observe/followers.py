"""How far the followers of a table are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from framework.amounts import counted
from framework.engine.follow import waiting
from framework.engine.iceberg import metadata
from framework.engine.rules.run_record import FailedRun, RunRecord
from framework.model import Follower, Pipeline

State = Literal["pending", "connected", "lagging", "failing"]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A follower at one moment: about how many rows it has not shown, and its last failure."""

    follower: Follower
    state: State
    rows: int
    failed: FailedRun | None

    @property
    def words(self) -> str:
        waits = f"{counted(self.rows, 'row')} wait" if self.rows else "has all rows"
        return "nothing was shown yet" if self.state == "pending" else f"{self.state}, {waits}"


def shown(pipeline: Pipeline, record: RunRecord) -> Iterator[Shown]:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier) if pipeline.also else None
    for follower in pipeline.also:
        rows = waiting.rows(table, follower) if table else 0
        waits = table is not None and waiting.step(table, follower) is not None
        failed = record.followers.get(follower.tag) if waits else None
        tagged = table is not None and follower.tag in table.refs
        yield Shown(follower=follower, state=_state(tagged, rows, failed), rows=rows, failed=failed)


def _state(tagged: bool, rows: int, failed: FailedRun | None) -> State:
    if failed:
        return "failing"
    if rows:
        return "lagging"
    return "connected" if tagged else "pending"
