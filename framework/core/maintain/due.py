"""The maintenance that a table is due for, with its reasons: from its metadata, without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone

from framework.base import amounts
from framework.base.errors import UnreachableError
from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import main_line
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.table_state import state_of
from framework.core.maintain import file_lists, readers, thinning
from framework.core.maintain.thinning import NO_NEEDS, NOT_ANY, Expirable, Needs
from framework.core.rules import protocol
from framework.core.rules.protocol import Standing, standing
from framework.core.rules.refusals import is_ours
from framework.plan import Maintain, Pipeline
from framework.plan.maintenance import COMPACT_EVERY

FEWEST_FILES = 5
"""The fewest small files that are worth a larger one."""
FEWEST_SNAPSHOTS = 20
"""After a run, at least so many snapshots are expired at once: each time, all lists of files are read."""
_CROWD, _SOONEST = 300, 60.0  # so many new files are compacted at once, unless that was so few seconds ago
SMALL = 0.75
"""Files below this share of the target size are small, as in Iceberg itself."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """The maintenance that one table is due for. `expirable` are snapshots."""

    identifier: str
    compact: bool
    why: str  # of a compaction, or of none
    average: int = 0  # bytes of a file
    expirable: Expirable = NOT_ANY
    delete: bool = False  # files of snapshots that have expired before

    @property
    def behind_a_run(self) -> bool:
        """Whether the next run does this maintenance."""
        return self.compact or self.delete or len(self.expirable.ids) >= FEWEST_SNAPSHOTS

    @property
    def words(self) -> str:
        says = f"{'to compact' if self.compact else 'no compaction'}: {self.why}"
        says += f"; {amounts.counted(len(self.expirable.ids), 'snapshot')} to expire" if self.expirable.ids else ""
        return f"{says}; files of expired snapshots to delete" if self.delete else says


def due(pipeline: Pipeline, current_time: datetime, by_person: bool = False) -> tuple[Due, ...]:
    """The maintenance that the table and its side tables are due for; with `by_person`, even if the last compaction was a short time
    ago. A table that was rolled back keeps all snapshots: they say what is to be read again. So does a table of another pipeline."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, pipeline.table.identifier)
    if table is None or table.main is None:
        return ()
    state = state_of(table)
    if state is None or standing(state) in (Standing.ROLLED_BACK, Standing.FOREIGN):
        return ()
    if not is_ours(pipeline, state.owner):  # its own pipeline knows what it has to keep
        return ()
    needs = readers.needs(table, pipeline, current_time)
    duties = [_due_of(table, pipeline.table.identifier, pipeline.maintain, current_time, by_person, needs)]
    for side in pipeline.table.side_tables:
        side_table = metadata.read(catalog, side.identifier)
        if side_table is not None and side_table.main is not None:
            duties.append(_due_of(side_table, side.identifier, pipeline.maintain, current_time, by_person))
    return tuple(duties)


def behind_a_run(pipeline: Pipeline, current_time: datetime) -> tuple[Due, ...]:
    """The maintenance that the next run does; none if another catalog does not say what the readers of the table need."""
    try:
        return tuple(duty for duty in due(pipeline, current_time) if duty.behind_a_run)
    except UnreachableError:
        return ()


def _due_of(
    table: Metadata, identifier: str, maintain: Maintain, current_time: datetime, by_person: bool, needs: Needs = NO_NEEDS
) -> Due:
    compact, why = _compaction(table, maintain, current_time, by_person)
    summary = metadata.summary(table.main)
    average = int(summary.get("total-files-size", 0)) // max(1, int(summary.get("total-data-files", 0)))
    expirable = thinning.expirable(table, maintain, current_time, needs)
    delete = file_lists.is_due(table, current_time)
    return Due(identifier=identifier, compact=compact, why=why, average=average, expirable=expirable, delete=delete)


def _compaction(table: Metadata, maintain: Maintain, current_time: datetime, by_person: bool) -> tuple[bool, str]:
    summary = metadata.summary(table.main)
    file_count, size, marked_rows = (
        int(summary.get(name, 0)) for name in ("total-data-files", "total-files-size", "total-position-deletes")
    )
    last_time, last_file_count = last_compaction(table)
    seconds = (current_time - last_time).total_seconds()
    is_crowded = maintain.compact_every == COMPACT_EVERY and file_count >= last_file_count + _CROWD and seconds >= _SOONEST
    if not by_person and seconds < maintain.compact_every and not is_crowded:
        return False, "was compacted not long ago"
    if marked_rows:
        return True, f"{marked_rows:,} deleted rows are still in files"
    if file_count < last_file_count + FEWEST_FILES:
        reason = "hardly more than after the last compaction" if last_file_count else "too few for one"
        return False, f"{amounts.counted(file_count, 'file')}, {reason}"
    if size / file_count >= SMALL * maintain.compact_to:
        return False, f"{amounts.counted(file_count, 'file')}, large enough"
    return True, f"{amounts.counted(file_count, 'file')} of {amounts.size(size // file_count)} each"


def last_compaction(table: Metadata) -> tuple[datetime, int]:
    """The time of the table's last compaction, and its number of files then. A new table counts as compacted."""
    try:
        record = json.loads(table.properties[protocol.COMPACTED])
        return datetime.fromisoformat(record["at"]), int(record["files"])
    except (KeyError, ValueError, TypeError):
        *_, oldest = main_line(table)
        return table.published(oldest), 0


def compacted(time: datetime, files: int) -> dict[str, str]:
    """The properties that record the end of a compaction: its time, and the number of files after it."""
    record = {"at": time.astimezone(timezone.utc).isoformat(timespec="seconds"), "files": files}
    return {protocol.COMPACTED: json.dumps(record), protocol.COMPACTING: ""}
