"""The commits that move main, the position or state. Each moves all that belongs together, and is refused if another one came before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from framework.core.iceberg import state_branches
from framework.core.iceberg.jvm_state import branches, unused_name
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.updates import Commit
from framework.core.rules import forgotten, protocol
from framework.core.rules.protocol import Position
from framework.core.spark.java_errors import CommitRefused


def prepare(commit: Commit, attempt: str, position: Position, forget: Iterable[str], properties: Mapping[str, str]) -> None:
    """Moves main, position, tag and state of an unpublished table to what an attempt has staged there: one commit publishes all of it.
    `forget` are branches of state that are no longer needed, `properties` are set, too."""
    commit.set({protocol.POSITION: position.text(), **properties})
    with commit.references() as references:
        references.fast_forward(protocol.BRANCH + attempt)
        references.tag(protocol.TAG, position.snapshot)
        for branch in state_branches.staged(commit.table, attempt):
            state_branches.publish(references, branch, attempt)
        references.remove(*forget, protocol.BRANCH + attempt)
    commit.make()


def fence(lake: TableStore, table: Any) -> None:
    """Takes a sequence number, so that no catalog takes the snapshot of an attempt that began before. Main stays where it is: on top of a
    rollback of another program, a snapshot would hide it."""
    commit = lake.begin(table)
    scratch = unused_name(commit.table, f"{protocol.BRANCH}fence")
    with commit.references() as references:
        references.branch(scratch, commit.main)
    commit.append({protocol.PINNED: "true"}, scratch)
    with commit.references() as references:
        references.remove(scratch)
    commit.publish()


def move_position(
    commit: Commit, position: Position, properties: Mapping[str, str] | None = None, main: int | None = None
) -> None:
    """Moves the position without a batch, as `sluice accept` does, and main back to the snapshot `main`, if it is given. State of
    batches that were rolled back is deleted: their messages are read again."""
    commit.set({protocol.POSITION: position.text(), **(properties or {})})
    with commit.references() as references:
        if main is not None:
            references.roll_back(main)
        references.tag(protocol.TAG, position.snapshot)
        published = commit.table.snapshot(position.snapshot)
        for branch in state_branches.branches(commit.table) if published else ():
            state_branches.roll_back(references, branch, published)
    commit.require_main()  # also where main went back: an attempt that began at that snapshot must see that main moved
    commit.publish()


def join(lake: TableStore, table: Any, attempt: str) -> None:
    """Publishes the branch's rows to main, whatever was committed there since. Does nothing if that is done already."""
    commit = lake.begin(table)
    branch = protocol.BRANCH + attempt
    tip = commit.table.snapshot(branch)
    if tip is None:
        return
    before = commit.main
    if tip.summary().get(protocol.ATTEMPT) == attempt:
        with commit.references() as references:
            if tip.parentId() == before:
                references.fast_forward(branch)
            else:
                references.cherrypick(tip.snapshotId())
    commit.remove_own(branch, before)
    commit.publish()


def advance(
    commit: Commit, attempt: str, base: int, other_attempt: str = "", properties: Mapping[str, str] | None = None
) -> None:
    """Moves main to the tip of the attempt's branch, if main is still where the branch began, and sets properties. The branch is
    removed, and so is that of `other_attempt`."""
    tip = commit.table.snapshot(protocol.BRANCH + attempt)
    if commit.main != base or tip is None:
        raise CommitRefused("another commit came before it")
    if tip.snapshotId() != base:
        with commit.references() as references:
            references.fast_forward(protocol.BRANCH + attempt)
    for name in filter(None, (attempt, other_attempt)):
        commit.remove_own(protocol.BRANCH + name, base)
    commit.set(properties or {})
    commit.require_main(base)
    commit.publish()


def empty(lake: TableStore, commit: Commit, properties: Mapping[str, str]) -> None:
    """Deletes all rows and the branches of all attempts and sets the properties, in one commit."""
    before = commit.main
    commit.delete_rows(lake.iceberg.expressions.Expressions.alwaysTrue(), {})
    for name, _ in list(branches(commit.table)):
        with commit.references() as references:
            references.remove(name)
    commit.set(properties)
    commit.require_nothing_else(before)
    commit.publish()


def replace_state(commit: Commit, branch: str, attempt: str) -> None:
    """Moves a branch of state to the snapshot that an attempt has staged, unless another commit has moved it meanwhile. After the empty
    commit on the branch, no list of files has the former files."""
    with commit.references() as references:
        references.remove(protocol.BRANCH + attempt)
        state_branches.publish(references, branch, attempt)
    commit.append({protocol.ATTEMPT: attempt}, branch)
    # A batch that runs has read the state as it was before: it is staged again.
    commit.append({forgotten.FORGETS: forgotten.DELETING})
    commit.publish()


def renew_empty(lake: TableStore, table: Any) -> None:
    """Lets states begin at a new empty snapshot: after a rebuild, the current one lists the files that were deleted."""
    tag = protocol.EMPTY
    if not table.refs().containsKey(tag):
        return
    commit = lake.begin(table)
    scratch = unused_name(commit.table, f"{protocol.BRANCH}empty")
    with commit.references() as references:
        references.branch(scratch, table.refs().get(tag).snapshotId())
    commit.append({forgotten.FORGETS: "emptied"}, scratch)
    with commit.references() as references:
        references.tag(tag, commit.table.refs().get(scratch).snapshotId())
        references.remove(scratch)
    commit.publish()
