"""The snapshots and the time to which a batch is pinned when it begins. A plan says what is read, and pins say as of when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from framework.plan import Bounds, TableChanges


@dataclass(frozen=True)
class PinnedTable:
    """The snapshot of another pipeline's table that a batch reads, and how many rows it has."""

    snapshot: int
    rows: int


@dataclass(frozen=True)
class Measured:
    """Bounds, and the snapshot of the pipeline's own table on which they are measured."""

    bounds: Bounds
    snapshot: int
    newest_time: int | None  # of that snapshot's rows, in microseconds
    since: frozenset[int]  # snapshots since which rows were only added


@dataclass(frozen=True)
class Pins:
    """The pins of a batch. Without pins, the newest snapshots are read, no bounds are known, and no row waits."""

    tables: Mapping[tuple[str, str], PinnedTable] = field(default_factory=dict)  # by catalog and name
    measured: Mapping[Bounds, Measured] = field(default_factory=dict)  # without bounds whose columns the table lacks
    time: int | None = None  # when the batch began, in microseconds

    def table(self, source: TableChanges) -> PinnedTable | None:
        """The pin of a table; None if it is read as it is now."""
        return self.tables.get(key_of(source))

    def snapshot(self, source: TableChanges) -> int | None:
        """The snapshot of a table that is read; None: the newest one."""
        pinned_table = self.table(source)
        return pinned_table.snapshot if pinned_table else None


NO_PINS = Pins()


def key_of(source: TableChanges) -> tuple[str, str]:
    return source.catalog.name, source.identifier
