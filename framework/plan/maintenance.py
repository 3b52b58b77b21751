"""How the files and snapshots of a table are tidied, and who reads its changes."""

from __future__ import annotations

from dataclasses import dataclass

from framework.plan.catalog import Catalog


@dataclass(frozen=True)
class DependentTable:
    """A table of another pipeline that is computed from a table."""

    catalog: Catalog
    identifier: str
    second: str  # the identifier of the table into which a rebuild computes it
    every_commit: bool  # whether it reads one commit at a time


@dataclass(frozen=True, kw_only=True)
class Thin:
    """The rule by which old snapshots are thinned out, in seconds."""

    all_for: int
    then_every: int
    for_: int
    then_every_hour: bool


MANY_EVERY = 10
"""The seconds between commits below which they are many."""
_SNAPSHOTS_OF_MANY = 100
COMPACT_EVERY = 3600
"""The seconds of a pipeline that does not say how often small files are compacted. Where many come, it is more often."""


@dataclass(frozen=True, kw_only=True)
class Maintain:
    """The settings for compaction and snapshot expiry, in bytes and seconds. `adapts`: fewer snapshots are kept than `thin` says where
    commits are many, since the spec does not say how they are thinned out."""

    compact_to: int
    compact_every: int
    keep_snapshots_for: int
    keep_at_least: int
    thin: Thin
    adapts: bool
    orphans_after: int

    def most_snapshots(self, every: int) -> int:
        """About how many snapshots are kept of a table with a commit each so many seconds."""
        if self.adapts and every < MANY_EVERY:
            return _SNAPSHOTS_OF_MANY
        ages = (self.thin.all_for, self.thin.all_for + self.thin.for_, self.keep_snapshots_for)
        steps = (every, max(every, self.thin.then_every), 3600 if self.thin.then_every_hour else max(every, self.thin.then_every))
        begins = (0, *ages)
        return sum(
            max(0, min(end, self.keep_snapshots_for) - begin) // step
            for begin, end, step in zip(begins, ages, steps, strict=False)
        )
