"""The commits that move main, the position or state. Each moves all that belongs together, and is refused if another one came before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from framework.core.iceberg import state_branches
from framework.core.iceberg.jvm_state import branches, unused_name
from framework.core.iceberg.lake import TableStore, set_properties, set_tag
from framework.core.rules import forgotten, protocol
from framework.core.rules.protocol import Position
from framework.core.spark.java_errors import CommitRefused, commit_answers


def prepare(table: Any, attempt: str, position: Position, forget: Iterable[str] = ()) -> None:
    """Moves main, position, tag and state of an unpublished table to what an attempt has staged there: one commit publishes all of it.
    `forget` are branches of state that are no longer needed."""
    with commit_answers():
        transaction = table.newTransaction()
        set_properties(transaction, {protocol.POSITION: position.text()})
        snapshots = transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt)
        snapshots = set_tag(transaction, snapshots, protocol.TAG, position.snapshot)
        for branch in state_branches.staged(transaction.table(), attempt):
            snapshots = state_branches.publish(transaction.table(), snapshots, branch, attempt)
        for branch in (*forget, protocol.BRANCH + attempt):
            snapshots = snapshots.removeBranch(branch)
        snapshots.commit()
        transaction.commitTransaction()


def fence(lake: TableStore, table: Any) -> None:
    """Takes a sequence number, so that no catalog takes the snapshot of an attempt that began before. Main stays where it is: on top of a
    rollback of another program, a snapshot would hide it."""
    with commit_answers():
        transaction = table.newTransaction()
        scratch = unused_name(transaction.table(), f"{protocol.BRANCH}fence")
        transaction.manageSnapshots().createBranch(scratch, transaction.table().currentSnapshot().snapshotId()).commit()
        transaction.newAppend().toBranch(scratch).set(protocol.PINNED, "true").commit()
        transaction.manageSnapshots().removeBranch(scratch).commit()
        lake.commit(transaction)


def move_position(
    lake: TableStore, transaction: Any, position: Position, properties: Mapping[str, str] | None = None, main: int | None = None
) -> None:
    """Moves the position without a batch, as `sluice accept` does, and main back to the snapshot `main`, if it is given. State of
    batches that were rolled back is deleted: their messages are read again."""
    with commit_answers():
        set_properties(transaction, {protocol.POSITION: position.text(), **(properties or {})})
        snapshots = transaction.manageSnapshots()
        if main is not None:
            snapshots = snapshots.rollbackTo(main)
        snapshots = set_tag(transaction, snapshots, protocol.TAG, position.snapshot)
        table = transaction.table()
        published = table.snapshot(position.snapshot)
        for branch in state_branches.branches(table) if published else ():
            snapshots = state_branches.roll_back(table, snapshots, branch, published)
        snapshots.commit()
        if not lake.component.checks_all:
            lake.pin(transaction)  # also where main went back: an attempt that began at that snapshot must see that main moved
        lake.commit(transaction)


def join(lake: TableStore, table: Any, attempt: str) -> None:
    """Publishes the branch's rows to main, whatever was committed there since. Does nothing if that is done already."""
    transaction = lake.begin(table)
    current_table = transaction.table()
    branch = protocol.BRANCH + attempt
    tip = current_table.snapshot(branch)
    if tip is None:
        return
    with commit_answers():
        before = current_table.currentSnapshot().snapshotId()
        if tip.summary().get(protocol.ATTEMPT) == attempt:
            snapshots = transaction.manageSnapshots()
            is_child = tip.parentId() == before
            (snapshots.fastForwardBranch("main", branch) if is_child else snapshots.cherrypick(tip.snapshotId())).commit()
        remove_own(lake, transaction, branch, before)
        lake.commit(transaction)


def advance(
    lake: TableStore,
    transaction: Any,
    attempt: str,
    base: int,
    other_attempt: str = "",
    properties: Mapping[str, str] | None = None,
) -> None:
    """Moves main to the tip of the attempt's branch, if main is still where the branch began, and sets properties. The branch is
    removed, and so is that of `other_attempt`."""
    current_table = transaction.table()
    tip = current_table.snapshot(protocol.BRANCH + attempt)
    if current_table.currentSnapshot().snapshotId() != base or tip is None:
        raise CommitRefused("another commit came before it")
    with commit_answers():
        if tip.snapshotId() != base:
            transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt).commit()
        for name in filter(None, (attempt, other_attempt)):
            remove_own(lake, transaction, protocol.BRANCH + name, base)
        set_properties(transaction, properties or {})
        if not lake.component.checks_all:
            lake.pin(transaction, base)
        lake.commit(transaction)


def empty(lake: TableStore, transaction: Any, properties: Mapping[str, str]) -> None:
    """Deletes all rows and the branches of all attempts and sets the properties, in one commit."""
    with commit_answers():
        before = transaction.table().currentSnapshot().snapshotId()
        transaction.newDelete().deleteFromRowFilter(lake.iceberg.expressions.Expressions.alwaysTrue()).commit()
        for name, _ in list(branches(transaction.table())):
            transaction.manageSnapshots().removeBranch(name).commit()
        set_properties(transaction, properties)
        lake.pin(transaction, before)
        lake.commit(transaction)


def remove_own(lake: TableStore, transaction: Any, branch: str, other_snapshot: int) -> None:
    """Removes the branch that a commit publishes. Refused if another process has removed it, which took the attempt for dead.

    A catalog that compares only the branches that a commit sets has to set this one first, to `other_snapshot`.
    """
    tip = transaction.table().snapshot(branch)
    if not lake.component.checks_all and tip is not None and tip.snapshotId() != other_snapshot:
        transaction.manageSnapshots().replaceBranch(branch, other_snapshot).commit()
    transaction.manageSnapshots().removeBranch(branch).commit()


def replace_state(lake: TableStore, transaction: Any, branch: str, attempt: str) -> None:
    """Moves a branch of state to the snapshot that an attempt has staged, unless another commit has moved it meanwhile. After the empty
    commit on the branch, no list of files has the former files."""
    table = transaction.table()
    with commit_answers():
        snapshots = transaction.manageSnapshots().removeBranch(protocol.BRANCH + attempt)
        state_branches.publish(table, snapshots, branch, attempt).commit()
        transaction.newAppend().toBranch(branch).set(protocol.ATTEMPT, attempt).commit()
        # A batch that runs has read the state as it was before: it is staged again.
        transaction.newAppend().set(forgotten.FORGETS, forgotten.DELETING).commit()
        lake.commit(transaction)


def renew_empty(lake: TableStore, table: Any) -> None:
    """Lets states begin at a new empty snapshot: after a rebuild, the current one lists the files that were deleted."""
    tag = protocol.EMPTY
    if not table.refs().containsKey(tag):
        return
    with commit_answers():
        transaction = table.newTransaction()
        scratch = unused_name(transaction.table(), f"{protocol.BRANCH}empty")
        transaction.manageSnapshots().createBranch(scratch, table.refs().get(tag).snapshotId()).commit()
        transaction.newAppend().toBranch(scratch).set(forgotten.FORGETS, "emptied").commit()
        snapshot = transaction.table().refs().get(scratch).snapshotId()
        transaction.manageSnapshots().replaceTag(tag, snapshot).removeBranch(scratch).commit()
        lake.commit(transaction)
