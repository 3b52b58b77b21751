"""A table as one attempt sees it, until a single commit publishes it (`Unpublished.java`)."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from framework.base.errors import BatchError
from framework.core.iceberg.lake import TableStore
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers


class Unpublished:
    """The table with the branches that the attempt makes, of which the catalog does not know. `may_be_published`: a commit was sent, and
    the attempt's files may belong to the table."""

    def __init__(self, lake: TableStore, loaded: Any, attempt: str) -> None:
        self._lake = lake
        with commit_answers():
            self._own = lake.spark._jvm.sluice.Unpublished.begin(loaded, attempt)
            self.table = self._own.table()
        self.may_be_published = False

    def publish(self) -> None:
        """Makes all changes in one commit. Refused if the table has changed since the attempt began, or since `put_onto`."""
        self.may_be_published = True
        with commit_answers():
            self._lake.publish(SimpleNamespace(commitTransaction=self._own.publish))

    def judge(self, loaded: Any) -> None:
        """Finds out whether another commit has overtaken this attempt's for good."""
        with commit_answers():
            self.may_be_published = not self._own.isOvertakenIn(loaded)

    def put_onto(self, loaded: Any) -> None:
        """Puts the changes onto the table as it is by now. Refused if a snapshot was added, or if a branch or tag that they set has
        moved."""
        try:
            with commit_answers():
                self._own.putOnto(loaded)
        except CommitUnknown as error:  # nothing was sent
            raise CommitRefused(str(error)) from None

    def end(self) -> None:
        """Ends the attempt. Files that are no table's are deleted. Errors are not told: the attempt's own outcome is."""
        with suppress(CommitRefused, CommitUnknown, BatchError), commit_answers():
            self._own.end()
            if not self.may_be_published:
                self._own.deleteFiles()
