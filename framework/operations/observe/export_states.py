"""The exports of tables: when each wrote its last file, and for how long the next one has been due.

*Limit* What was written is known from the records below `.sluice/exports`: of this machine. Of an export without a record nobody knows.
*Cost* The records of an export are read once for each file that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path

from framework.base import iso_times
from framework.features.export import records, window
from framework.language.cron import next_after
from framework.plan import Pipeline, Plan
from framework.plan.export import Export


@dataclass(frozen=True, kw_only=True)
class ExportState:
    """An export at one moment, and when it wrote the file of its latest window; None where nobody knows."""

    export: Export
    written: datetime | None

    def late(self, moment: datetime) -> float | None:
        """The seconds for which a file has been due by the schedule. None where nobody knows."""
        if self.export.schedule is None or self.written is None:
            return None
        return max(0.0, (moment - next_after(self.export.schedule, self.written)).total_seconds())


def export_states(plan: Plan, pipeline: Pipeline, moment: datetime) -> Iterator[ExportState]:
    """The states of the exports of a pipeline's table."""
    for document in plan.documents_of("export"):
        export: Export = document.value
        if export.pipeline.name == pipeline.name:
            yield ExportState(export=export, written=_written(export, moment))


def _written(export: Export, moment: datetime) -> datetime | None:
    """When the file of the latest window was written: one of an old window, by hand, is none that was due."""
    times = _times(export.journal_name)
    if export.window is None:
        return times.get("")
    length = len(window.last_complete(export.window, moment).name)  # of names of the same kind: a week's are shorter than a day's
    latest_window = max((name for name in times if len(name) == length), default="")
    return times.get(latest_window) if latest_window else None


def _times(export: str) -> Mapping[str, datetime]:
    """When the last file of each window was written."""
    file = records.file(export)
    with suppress(OSError):
        changed = file.stat()
        return _read(file, export, changed.st_mtime_ns, changed.st_size)
    return {}


@lru_cache(maxsize=512)
def _read(_file: Path, export: str, _changed: int, _size: int) -> Mapping[str, datetime]:
    times = {}
    for name, record in records.by_window(export).items():
        with suppress(ValueError, TypeError, AttributeError):  # another program may have changed it
            time = iso_times.read(record.at)
            times[name] = (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    return times
