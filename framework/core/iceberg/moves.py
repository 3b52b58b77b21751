"""The commits that move main, the position or state. Each takes all that belongs together, and is refused if another one came before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from framework.core.iceberg import state_branches
from framework.core.iceberg.jvm_state import branches, unused_name
from framework.core.iceberg.lake import Lake, set_properties, set_tag
from framework.core.rules import forgotten, protocol
from framework.core.rules.protocol import Position
from framework.core.spark.java_errors import CommitRefused, commit_answers


def publish(lake: Lake, transaction: Any, attempt: str, position: Position, forget: Iterable[str] = ()) -> None:
    """Main, position, tag, branch and state change together or not at all; `forget` are branches of state that are no longer needed."""
    with commit_answers():
        before = transaction.table().currentSnapshot().snapshotId()
        set_properties(transaction, {protocol.POSITION: position.text()})
        snapshots = transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt)
        snapshots = set_tag(transaction, snapshots, protocol.TAG, position.snapshot)
        for branch in state_branches.staged(transaction.table(), attempt):
            snapshots = state_branches.publish(transaction.table(), snapshots, branch, attempt)
        for branch in forget:
            snapshots = snapshots.removeBranch(branch)
        snapshots.commit()
        remove_own(lake, transaction, protocol.BRANCH + attempt, before)
        lake.commit(transaction)


def move_position(
    lake: Lake, transaction: Any, position: Position, also: Mapping[str, str] | None = None, main: int | None = None
) -> None:
    """Moves the position without a batch, as `sluice accept` does, and main back to a snapshot, if one is given. State of batches
    that were rolled back is deleted: their messages are read again."""
    with commit_answers():
        set_properties(transaction, {protocol.POSITION: position.text(), **(also or {})})
        snapshots = transaction.manageSnapshots()
        if main is not None:
            snapshots = snapshots.rollbackTo(main)
        snapshots = set_tag(transaction, snapshots, protocol.TAG, position.snapshot)
        table = transaction.table()
        published = table.snapshot(position.snapshot)
        for branch in state_branches.branches(table) if published else ():
            snapshots = state_branches.roll_back(table, snapshots, branch, published)
        snapshots.commit()
        if not lake.of.checks_all:
            lake.pin(transaction)  # also where main went back: who began at that snapshot must not take it for unmoved
        lake.commit(transaction)


def join(lake: Lake, table: Any, attempt: str) -> None:
    """Publishes the branch's rows to main, whatever was committed there since. Does nothing if that is done already."""
    transaction = lake.begin(table)
    now = transaction.table()
    branch = protocol.BRANCH + attempt
    tip = now.snapshot(branch)
    if tip is None:
        return
    with commit_answers():
        before = now.currentSnapshot().snapshotId()
        if tip.summary().get(protocol.ATTEMPT) == attempt:
            snapshots = transaction.manageSnapshots()
            behind = tip.parentId() == before
            (snapshots.fastForwardBranch("main", branch) if behind else snapshots.cherrypick(tip.snapshotId())).commit()
        remove_own(lake, transaction, branch, before)
        lake.commit(transaction)


def advance(
    lake: Lake, transaction: Any, attempt: str, base: int, and_branch: str = "", properties: Mapping[str, str] | None = None
) -> None:
    """Moves main to the tip of the attempt's branch, if main is still where that began, and sets properties. The branch goes, and
    that of another."""
    now = transaction.table()
    tip = now.snapshot(protocol.BRANCH + attempt)
    if now.currentSnapshot().snapshotId() != base or tip is None:
        raise CommitRefused("another commit came before it")
    with commit_answers():
        if tip.snapshotId() != base:
            transaction.manageSnapshots().fastForwardBranch("main", protocol.BRANCH + attempt).commit()
        for name in filter(None, (attempt, and_branch)):
            remove_own(lake, transaction, protocol.BRANCH + name, base)
        set_properties(transaction, properties or {})
        if not lake.of.checks_all:
            lake.pin(transaction, base)
        lake.commit(transaction)


def empty(lake: Lake, transaction: Any, properties: Mapping[str, str]) -> None:
    """Deletes all rows and the branches of all attempts and sets the properties, in one commit."""
    with commit_answers():
        before = transaction.table().currentSnapshot().snapshotId()
        transaction.newDelete().deleteFromRowFilter(lake.iceberg.expressions.Expressions.alwaysTrue()).commit()
        for name, _ in list(branches(transaction.table())):
            transaction.manageSnapshots().removeBranch(name).commit()
        set_properties(transaction, properties)
        lake.pin(transaction, before)
        lake.commit(transaction)


def remove_own(lake: Lake, transaction: Any, branch: str, another: int) -> None:
    """Removes the branch that a commit publishes; refused if another has removed it, who took the attempt for dead.

    A catalog that compares only what a commit sets is asked to set it first, to another snapshot.
    """
    tip = transaction.table().snapshot(branch)
    if not lake.of.checks_all and tip is not None and tip.snapshotId() != another:
        transaction.manageSnapshots().replaceBranch(branch, another).commit()
    transaction.manageSnapshots().removeBranch(branch).commit()


def replace_state(lake: Lake, transaction: Any, branch: str, attempt: str) -> None:
    """Moves a branch of state to what an attempt has made of it, unless another has moved it meanwhile. No list of files has those
    from before."""
    table = transaction.table()
    with commit_answers():
        snapshots = transaction.manageSnapshots().removeBranch(protocol.BRANCH + attempt)
        state_branches.publish(table, snapshots, branch, attempt).commit()
        transaction.newAppend().toBranch(branch).set(protocol.ATTEMPT, attempt).commit()
        # A batch that runs has read the state as it was before: it is staged again.
        transaction.newAppend().set(forgotten.FORGETS, forgotten.DELETING).commit()
        lake.commit(transaction)


def renew_empty(lake: Lake, table: Any) -> None:
    """Lets states begin at a new empty snapshot: after a rebuild, the one before lists the files that there were."""
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
