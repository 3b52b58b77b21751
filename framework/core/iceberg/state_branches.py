"""State of a pipeline, such as the keys that were deleted: branches of its table, which commits of the table move with main."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framework.base.errors import RefusedError
from framework.core.iceberg.jvm_state import names, total
from framework.core.rules import protocol

if TYPE_CHECKING:
    from framework.core.iceberg.lake import TableStore
    from framework.core.iceberg.updates import References

_MAX_KEPT = 100  # snapshots of a branch that expiry leaves, so that a rollback over so many batches finds the state before it


def branches(table: Any) -> list[str]:
    """The branches of states. A branch of another program is none, whatever its name."""
    refs = table.refs()
    candidates = [name for name in names(table) if protocol.is_state(name) and refs[name].isBranch()]
    return [name for name in candidates if protocol.is_state_line(_line(table, table.snapshot(name)))]


def _line(table: Any, snapshot: Any) -> Iterator[tuple[Any, int | None]]:
    while snapshot is not None:
        parent = snapshot.parentId()
        yield snapshot.summary(), parent
        snapshot = None if parent is None else table.snapshot(parent)


def parts(table: Any, state: str) -> list[str]:
    """The branches of one state."""
    return sorted(name for name in branches(table) if name.startswith(protocol.state_branch(state, "")))


def staged(table: Any, attempt: str) -> list[str]:
    """The branches of state to which an attempt adds."""
    ending = protocol.staged_state("", attempt)
    return [branch for name in names(table) if name.endswith(ending) and protocol.is_state(branch := name.removesuffix(ending))]


def publish(references: References, branch: str, attempt: str) -> None:
    """Moves the branch to the snapshot that an attempt has staged, unless another commit has moved it meanwhile."""
    from framework.core.spark.java_errors import CommitRefused

    table = references.table
    staged_branch = protocol.staged_state(branch, attempt)
    tip, base = table.snapshot(staged_branch), table.snapshot(branch) or table.snapshot(protocol.EMPTY)
    if tip.parentId() != base.snapshotId() or tip.summary().get(protocol.ATTEMPT) != attempt:
        raise CommitRefused(f"the branch {branch} has changed")
    ref = table.refs().get(branch)
    (references.move if ref else references.branch)(branch, tip.snapshotId())
    references.remove(staged_branch)
    references.keep(branch, min(_MAX_KEPT, _kept_snapshots(ref) + 1 if ref else 1))


def _kept_snapshots(ref: Any) -> int:
    """The number of snapshots that expiry leaves on a branch: its own, without the table's from which it began."""
    return int(ref.minSnapshotsToKeep() or 1)


def roll_back(references: References, branch: str, published: Any) -> None:
    """Moves the branch back to where it was when a batch was published. The batch's own state is staged after its rows. Numbers tell what
    came later: a clock can step back."""
    attempt, published_number = published.summary().get(protocol.ATTEMPT), published.sequenceNumber()
    table = references.table
    tip, undone_count = table.snapshot(branch), 0
    while tip.sequenceNumber() > published_number:
        if attempt is not None and tip.summary().get(protocol.ATTEMPT) == attempt:
            break
        if tip.parentId() is None:
            references.remove(branch)
            return
        undone_count += 1
        tip = table.snapshot(tip.parentId())
        if tip is None:
            raise RefusedError(
                "deletes-expired",
                f"the pipeline's state from before the rollback is gone: snapshots of the branch {branch} have expired",
                f"`sluice rebuild {table.name().partition('.')[2]}` rebuilds the table from its topics",
            )
    if undone_count:
        references.move(branch, tip.snapshotId())
        references.keep(branch, max(1, _kept_snapshots(table.refs().get(branch)) - undone_count))


def begin(lake: TableStore, table: Any, attempt: str, branch: str) -> int:
    """Creates the branch on which the attempt adds to a part of a state. Returns the number of files of that part."""
    base = table.snapshot(branch) or table.snapshot(protocol.EMPTY)
    lake.branch_as(table, protocol.staged_state(branch, attempt), base.snapshotId())
    return total(base, "data-files")
