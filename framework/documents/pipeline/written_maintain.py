"""The maintenance of a table's files and snapshots behind its batches."""

from __future__ import annotations

from dataclasses import dataclass

from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration, Size
from framework.plan.maintenance import COMPACT_EVERY


@dataclass(frozen=True)
class Thin(OptionGroup):
    """The rule by which old snapshots are thinned out, before they are too old to be kept."""

    all_for: Duration = option("How long each snapshot is kept.", default=3600, at_least="10m", example="1h")
    then_every: Duration = option(
        "After that, one snapshot of each such interval is kept.", default=60, at_least="1s", example="1m"
    )
    for_: Duration = option("For how long these are kept.", default=86400, at_least="0s", example="1d")
    then_every_hour: bool = option("Whether, after that, one snapshot of each hour is kept; otherwise all of them.", default=True)


@dataclass(frozen=True)
class Maintain(OptionGroup):
    """Compaction of files, and expiry of snapshots."""

    compact_to: Size = option("The target size of a file.", default=128 << 20, at_least="1MB", at_most="4GB", example="128MB")
    compact_every: Duration = option("How often small files are compacted.", default=COMPACT_EVERY, at_least="1m", example="1h")
    keep_snapshots_for: Duration = option("How long old snapshots are kept.", default=7 * 86400, at_least="1h", example="7d")
    keep_at_least: int = option("How many snapshots are kept, however old.", default=20, at_least=1, example="20")
    thin: Thin = option(
        "How old snapshots are thinned out. If it is not given, fewer are kept where commits come faster than each ten seconds.",
        default=Thin(),
        example="{all_for: 1h, then_every: 1m, for: 1d}",
    )
    orphans_after: Duration = option(
        "The age from which `sluice maintain` deletes a file that no commit names.",
        default=3 * 86400,
        at_least="1d",
        example="3d",
    )
