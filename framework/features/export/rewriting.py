"""Files of exports in which a person may be: each is written again, under the same name, from the table as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from framework.features.export import place, records, window
from framework.features.export.records import Record
from framework.features.export.write import ExportDone, write
from framework.plan import Pipeline, Plan
from framework.plan.export import Export


def written(plan: Plan, pipeline: Pipeline) -> Iterator[tuple[Export, Record]]:
    """The files that exports of the table have written, without local ones that no longer exist."""
    for document in plan.documents_of("export"):
        export: Export = document.value
        if export.pipeline.name == pipeline.name:
            for record in records.by_window(export.journal_name).values():
                if export.storage or Path(record.file).exists():
                    yield export, record


def write_again(plan: Plan, export: Export, record: Record, current_time: datetime) -> ExportDone | None:
    """Writes a file again. Returns None where the export has another file for the window by now: this one cannot be written again."""
    if not _is_written(export, record, current_time):
        return None
    return write(export, window.chosen(export, record.window, current_time), current_time, plan.secrets)


def abandoned_files(plan: Plan, pipeline: Pipeline, current_time: datetime) -> Iterator[str]:
    """Files that may have the person: of exports that are no longer in the specs or that write other files by now, and files that another
    environment has written, maybe from the same table."""
    exports = {document.name: document.value for document in plan.documents_of("export")}
    for name in records.exports():
        namesake = exports.get(name.rpartition("/")[2])
        if namesake is None or namesake.pipeline.name == pipeline.name:
            export = namesake if namesake and namesake.journal_name == name else None
            yield from (
                record.file
                for record in records.by_window(name).values()
                if export is None or not _is_written(export, record, current_time)
            )


def _is_written(export: Export, record: Record, current_time: datetime) -> bool:
    if (export.window is None) != (not record.window):
        return False
    return place.name(export, window.chosen(export, record.window, current_time)) == record.file
