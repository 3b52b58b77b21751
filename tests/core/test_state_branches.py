"""Branches of state behind a rollback: which snapshot of a branch belongs to a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from framework.core.iceberg import state_branches
from framework.core.rules import protocol


@dataclass(frozen=True)
class Commit:
    """A snapshot with the methods that Java's have. Its time is earlier than that of the snapshot before it: the clock steps back."""

    number: int
    parent: int | None
    attempt: str | None

    def snapshotId(self) -> int:
        return self.number

    def parentId(self) -> int | None:
        return self.parent

    def sequenceNumber(self) -> int:
        return self.number

    def timestampMillis(self) -> int:
        return -self.number

    def summary(self) -> dict[str, str]:
        return {} if self.attempt is None else {protocol.ATTEMPT: self.attempt}


class Reference:
    def minSnapshotsToKeep(self) -> int:
        return 3


@dataclass
class References:
    """A table whose branch has the state of three batches, and what becomes of the branch. Each batch has its rows, then its state."""

    tip: int = 7
    done: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def table(self) -> References:
        return self

    def snapshot(self, name: str | int) -> Commit | None:
        return SNAPSHOTS.get(self.tip if isinstance(name, str) else name)

    def refs(self) -> dict[str, Reference]:
        return {"sluice-deletes-all": Reference()}

    def move(self, *arguments: Any) -> None:
        self.done.append(("move", *arguments))

    def keep(self, *arguments: Any) -> None:
        self.done.append(("keep", *arguments))

    def remove(self, *arguments: Any) -> None:
        self.done.append(("remove", *arguments))


SNAPSHOTS = {
    commit.number: commit
    for commit in (
        Commit(1, None, None), Commit(2, 1, "a"), Commit(3, 1, "a"), Commit(4, 2, "b"), Commit(5, 3, "b"), Commit(6, 4, "c"),
        Commit(7, 5, "c"), Commit(8, 4, None),
    )
}  # fmt: skip
BRANCH = "sluice-deletes-all"


@pytest.mark.parametrize(("rows", "state", "kept"), [(4, 5, 2), (2, 3, 1), (1, 1, 1)])
def test_state_goes_back_with_its_batch_also_where_the_clock_stepped_back(rows: int, state: int, kept: int) -> None:
    references = References()
    state_branches.roll_back(references, BRANCH, SNAPSHOTS[rows])  # type: ignore[arg-type]
    assert references.done == [("move", BRANCH, state), ("keep", BRANCH, kept)]


@pytest.mark.parametrize("rows", [6, 8])
def test_the_state_of_the_newest_batch_stays(rows: int) -> None:
    """Also where its rows were compacted since, which wrote no state."""
    references = References()
    state_branches.roll_back(references, BRANCH, SNAPSHOTS[rows])  # type: ignore[arg-type]
    assert references.done == []
