"""How the files and snapshots of a table are tidied, and who reads its changes."""

from __future__ import annotations

from dataclasses import dataclass

from framework.plan.catalog import Catalog


@dataclass(frozen=True)
class DependentTable:
    """A table of another pipeline that is computed from the changes of a table."""

    catalog: Catalog
    identifier: str
    every_commit: bool  # whether it reads one commit at a time


@dataclass(frozen=True, kw_only=True)
class Thin:
    """The rule by which old snapshots are thinned out, in seconds."""

    all_for: int
    then_every: int
    for_: int
    then_every_hour: bool


@dataclass(frozen=True, kw_only=True)
class Maintain:
    """The settings for compaction and snapshot expiry, in bytes and seconds."""

    compact_to: int
    compact_every: int
    keep_snapshots_for: int
    keep_at_least: int
    thin: Thin
    orphans_after: int
