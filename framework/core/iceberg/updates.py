"""Commits to a table: all that Sluice changes of one, it changes here.

`Updates` of a loaded table are each a commit of its own, which Iceberg puts onto whatever was committed meanwhile. Those of a `Commit` are
made at once or not at all. What a commit requires is checked on its own `table`, which is the table as it was when the commit began.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from framework.core.iceberg.jvm_state import unused_name
from framework.core.rules import protocol
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers

CommitCall = Callable[[Any], None]


def commit_transaction(transaction: Any) -> None:
    """Makes a publishing commit; tests replace this function by one that loses or refuses answers."""
    transaction.commitTransaction()


class References:
    """Updates of branches and tags, which are one update of the table."""

    def __init__(self, action: Any, table: Any) -> None:
        self.action, self.table = action, table

    def tag(self, name: str, snapshot: int) -> None:
        """Tags a snapshot; a tag that is there moves to it."""
        self.action = (self.action.replaceTag if self._is_there(name) else self.action.createTag)(name, snapshot)

    def branch(self, name: str, snapshot: int) -> None:
        """Creates a branch at a snapshot: without one, it would begin wherever main is by then."""
        self.action = self.action.createBranch(name, snapshot)

    def move(self, name: str, snapshot: int) -> None:
        """Moves a branch to any snapshot."""
        self.action = self.action.replaceBranch(name, snapshot)

    def keep(self, branch: str, count: int) -> None:
        """Lets expiry leave so many snapshots on a branch."""
        self.action = self.action.setMinSnapshotsToKeep(branch, count)

    def remove(self, *names: str) -> None:
        """Removes branches; one that is not there is refused."""
        for name in names:
            self.action = self.action.removeBranch(name)

    def untag(self, *names: str) -> None:
        for name in names:
            self.action = self.action.removeTag(name)

    def fast_forward(self, branch: str) -> None:
        """Moves main to the newest snapshot of a branch that began at main's."""
        self.action = self.action.fastForwardBranch("main", branch)

    def cherrypick(self, snapshot: int) -> None:
        """Adds the rows of a snapshot to main."""
        self.action = self.action.cherrypick(snapshot)

    def roll_back(self, snapshot: int) -> None:
        """Moves main back to one of its snapshots. Iceberg's own rollback knows none behind those that have expired."""
        self.action = self.action.setCurrentSnapshot(snapshot)

    def _is_there(self, name: str) -> bool:
        return bool(self.table.refs().containsKey(name))


class Updates:
    """Updates of a loaded table or of a transaction."""

    def __init__(self, target: Any) -> None:
        self._target = target

    @property
    def table(self) -> Any:
        """The table."""
        return self._target

    def set(self, properties: Mapping[str, str]) -> None:
        with commit_answers():
            _with_values(self._target.updateProperties(), properties).commit()

    @contextmanager
    def references(self) -> Iterator[References]:
        """Branches and tags as they will be behind the block."""
        with commit_answers():
            references = References(self._target.manageSnapshots(), self.table)
            yield references
            references.action.commit()

    def append(self, summary: Mapping[str, str], branch: str = "main", files: Iterable[Any] = ()) -> None:
        """Adds a snapshot to a branch, with these files."""
        with commit_answers():
            append = _with_values(self._target.newAppend(), summary)
            append = append if branch == "main" else append.toBranch(branch)
            for file in files:
                append = append.appendFile(file)
            append.commit()

    def delete_rows(self, condition: Any, summary: Mapping[str, str]) -> None:
        """Deletes whole files whose rows are all in Iceberg's `condition`."""
        with commit_answers():
            _with_values(self._target.newDelete().deleteFromRowFilter(condition), summary).commit()

    def add_rows(self, files: Iterable[Any], deletes: Iterable[Any], since: int, summary: Mapping[str, str]) -> None:
        """Adds data files and files that mark rows as deleted. What was before the snapshot `since` may have expired."""
        with commit_answers():
            rows = _with_values(self._target.newRowDelta().validateFromSnapshot(since), summary)
            for file in files:
                rows = rows.addRows(file)
            for file in deletes:
                rows = rows.addDeletes(file)
            rows.commit()

    def expire(self, snapshots: Iterable[int], collector: Any | None = None, cleans: bool = True) -> None:
        """Removes these snapshots and no others. Their files are given to `collector`, deleted, or left where nothing `cleans`."""
        with commit_answers():
            action = self._target.expireSnapshots().expireOlderThan(0)  # older than 1970: no others
            for snapshot in snapshots:
                action = action.expireSnapshotId(snapshot)
            action = action if collector is None else action.deleteWith(collector)
            (action if cleans else action.cleanExpiredFiles(False)).commit()


class Commit(Updates):
    """Updates that the catalog takes at once, or refuses. It began when this was made: of what was committed later it knows nothing."""

    def __init__(self, transaction: Any, checks_all: bool, publish: CommitCall, refused: Any) -> None:
        super().__init__(transaction)
        self._checks_all, self._publish, self._refused = checks_all, publish, refused

    @property
    def table(self) -> Any:
        """The table with the updates so far. Only what is checked here is true when the commit is made."""
        return self._target.table()

    @property
    def transaction(self) -> Any:
        """Iceberg's transaction, for updates of a schema."""
        return self._target

    @property
    def main(self) -> int:
        """Main's newest snapshot, with the updates so far."""
        with commit_answers():
            return int(self.table.currentSnapshot().snapshotId())

    def require_nothing_else(self, main: int | None = None) -> None:
        """Makes the commit fail if anything was committed since it began. `main` is where main was when it began, if the commit has moved
        it.

        Iceberg repeats a transaction on newer commits unless it changes branches, so this creates and removes one. This suffices
        where a catalog compares the whole metadata with its base and swaps it.
        """
        if not self._checks_all and main in (None, self.main):
            self.append({protocol.PINNED: "true"})
        with self.references() as references:
            branch = unused_name(self.table, protocol.BRANCH + "pin")
            references.branch(branch, self.main)
            references.remove(branch)

    def require_main(self, main: int | None = None) -> None:
        """Makes the commit fail if main has moved since it began, where the catalog does not compare that by itself."""
        if not self._checks_all:
            self.require_nothing_else(main)

    def remove_own(self, branch: str, other_snapshot: int) -> None:
        """Removes the branch that the commit publishes. Refused if another process has removed it, which took the attempt for dead.

        A catalog that compares only the branches that a commit sets has to set this one first, to `other_snapshot`.
        """
        with commit_answers():
            tip = self.table.snapshot(branch)
        if not self._checks_all and tip is not None and tip.snapshotId() != other_snapshot:
            with self.references() as references:
                references.move(branch, other_snapshot)
        with self.references() as references:
            references.remove(branch)

    def make(self) -> None:
        """Makes a commit that publishes nothing."""
        self._make(commit_transaction)

    def publish(self) -> None:
        """Makes a commit that readers, or other batches, see."""
        self._make(self._publish)

    def _make(self, call: CommitCall) -> None:
        """Makes the commit, and deletes the metadata that it leaves if it is refused (`Refused.java`)."""
        with commit_answers():
            metadata = self._refused.metadata(self.table)
        try:
            with commit_answers():
                call(self._target)
        except CommitRefused:
            with suppress(CommitRefused, CommitUnknown), commit_answers():
                self._refused.delete(metadata)
            raise


def _with_values(action: Any, values: Mapping[str, str]) -> Any:
    """An action of Iceberg that also sets these properties, of the table or in the summary of its snapshot."""
    for key, value in values.items():
        action = action.set(key, value)
    return action


def without_own(table: Any, names: Collection[str]) -> None:
    """Removes tags and branches of other programs, as far as they are there, in one commit."""
    refs = table.refs()
    existing_names = [name for name in names if refs.containsKey(name)]
    if existing_names:
        with Updates(table).references() as references:
            for name in existing_names:
                (references.remove if refs.get(name).isBranch() else references.untag)(name)
