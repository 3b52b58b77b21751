"""The maintenance that a table is due for, with its reasons: from its metadata, without Spark."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timezone

from framework.base import amounts
from framework.base.errors import UnreachableError
from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.table_state import state_of
from framework.core.maintain import readers, thinning
from framework.core.rules import protocol
from framework.core.rules.protocol import Standing, standing
from framework.core.rules.refusals import is_ours
from framework.plan import Maintain, Pipeline

FEWEST_FILES = 5
"""So many small files are worth a larger one."""
FEWEST_SNAPSHOTS = 20
"""After a run so many snapshots are expired at once: each time, all lists of files are read."""
SMALL = 0.75
"""Files below this share of the wanted size are small, as Iceberg itself has it."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """The maintenance that one table is due for. `expirable` are snapshots."""

    identifier: str
    compact: bool
    why: str  # of a compaction, or of none
    average: int = 0  # bytes of a file
    expirable: tuple[int, ...] = ()

    @property
    def behind_a_run(self) -> bool:
        """Whether the next run does it."""
        return self.compact or len(self.expirable) >= FEWEST_SNAPSHOTS

    @property
    def words(self) -> str:
        says = f"{'to compact' if self.compact else 'no compaction'}: {self.why}"
        return f"{says}; {amounts.counted(len(self.expirable), 'snapshot')} to expire" if self.expirable else says


def due(pipeline: Pipeline, now: datetime, asked: bool = False) -> tuple[Due, ...]:
    """Of the table and its bad rows; `asked` for by a person, whenever the last compaction was. A table that was rolled back keeps
    all: its snapshots say what is to be read again. So does a table of another pipeline."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, pipeline.table.identifier)
    if table is None or table.main is None:
        return ()
    state = state_of(table)
    if state is None or standing(state) in (Standing.ROLLED_BACK, Standing.FOREIGN):
        return ()
    if not is_ours(pipeline, state.owner):  # its own pipeline knows what it has to keep
        return ()
    read = readers.needed(table, pipeline)
    tables = [_of(table, pipeline.table.identifier, pipeline.maintain, now, asked, read)]
    for side in pipeline.table.side_tables:
        side_table = metadata.read(catalog, side.identifier)
        if side_table is not None and side_table.main is not None:
            tables.append(_of(side_table, side.identifier, pipeline.maintain, now, asked))
    return tuple(tables)


def behind_a_run(pipeline: Pipeline, now: datetime) -> tuple[Due, ...]:
    """What the next run maintains; nothing where another catalog does not say what the readers of the table need."""
    try:
        return tuple(each for each in due(pipeline, now) if each.behind_a_run)
    except UnreachableError:
        return ()


def _of(table: Metadata, identifier: str, maintain: Maintain, now: datetime, asked: bool, read: Set[int] = frozenset()) -> Due:
    compact, why = _compaction(table, maintain, now, asked)
    total = metadata.summary(table.main)
    average = int(total.get("total-files-size", 0)) // max(1, int(total.get("total-data-files", 0)))
    expirable = thinning.expirable(table, maintain, now, read)
    return Due(identifier=identifier, compact=compact, why=why, average=average, expirable=expirable)


def _compaction(table: Metadata, maintain: Maintain, now: datetime, asked: bool) -> tuple[bool, str]:
    total = metadata.summary(table.main)
    files, size, marked = (int(total.get(name, 0)) for name in ("total-data-files", "total-files-size", "total-position-deletes"))
    at, left = last_compaction(table)
    if not asked and (now - at).total_seconds() < maintain.compact_every:
        return False, "was compacted not long ago"
    if marked:
        return True, f"{marked:,} deleted rows are still in files"
    if files < left + FEWEST_FILES:
        since = "hardly more than after the last compaction" if left else "too few for one"
        return False, f"{amounts.counted(files, 'file')}, {since}"
    if size / files >= SMALL * maintain.compact_to:
        return False, f"{amounts.counted(files, 'file')}, large enough"
    return True, f"{amounts.counted(files, 'file')} of {amounts.size(size // files)} each"


def last_compaction(table: Metadata) -> tuple[datetime, int]:
    """When the table was last compacted, and how many files it had then. A new table counts as compacted."""
    try:
        last = json.loads(table.properties[protocol.COMPACTED])
        return datetime.fromisoformat(last["at"]), int(last["files"])
    except (KeyError, ValueError, TypeError):
        *_, oldest = table.ancestors()
        return table.published(oldest), 0


def compacted(now: datetime, files: int) -> dict[str, str]:
    """The property that says so."""
    return {protocol.COMPACTED: json.dumps({"at": now.astimezone(timezone.utc).isoformat(timespec="seconds"), "files": files})}
