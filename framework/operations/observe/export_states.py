"""The exports of tables: when each wrote its last file, and when the next one is due.

*Limit* What was written is known from the records below `.sluice/exports`: of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from framework.base import iso_times
from framework.features.export import records
from framework.language.cron import next_after
from framework.plan import Pipeline, Plan
from framework.plan.export import Export


@dataclass(frozen=True, kw_only=True)
class ExportState:
    """An export at one moment, and when it wrote its last file; None where it has written none."""

    export: Export
    written: datetime | None

    def late(self, moment: datetime, since: datetime | None = None) -> float | None:
        """The seconds for which a file has been due. None where nobody knows: an export without a schedule, or without a file, unless it is
        known `since` when it has had none."""
        begin = self.written or since
        if self.export.schedule is None or begin is None:
            return None
        due = next_after(self.export.schedule, begin.astimezone(timezone.utc))
        return max(0.0, (moment - due).total_seconds())


def export_states(plan: Plan, pipeline: Pipeline) -> Iterator[ExportState]:
    """The states of the exports of a pipeline's table."""
    for document in plan.documents_of("export"):
        export: Export = document.value
        if export.pipeline.name == pipeline.name:
            times = [iso_times.read(record.at) for record in records.by_window(export.journal_name).values()]
            yield ExportState(export=export, written=max(times, default=None))
