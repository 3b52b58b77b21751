"""Files of exports in which a person may be: each is written again, under the same name, from the table as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from framework.features.export import place, records, window
from framework.features.export.records import Record
from framework.features.export.write import Done, write
from framework.plan import Pipeline, Plan
from framework.plan.export import Export


def written(plan: Plan, pipeline: Pipeline) -> Iterator[tuple[Export, Record]]:
    """The files that exports of the table have written, and that are still there as far as is known."""
    for document in plan.documents_of("export"):
        export: Export = document.value
        if export.pipeline.name == pipeline.name:
            for record in records.of(export.recorded_as).values():
                if export.storage or Path(record.file).exists():
                    yield export, record


def write_again(plan: Plan, export: Export, record: Record, now: datetime) -> Done | None:
    """None where the export has another file for the window by now, so that this one cannot be written again."""
    if not _is_written(export, record, now):
        return None
    return write(export, window.chosen(export, record.window, now), now, plan.secrets)


def left(plan: Plan, pipeline: Pipeline, now: datetime) -> Iterator[str]:
    """Files that may have the person: of exports that are not in the specs any more, that write other files by now, or that another
    environment has written, maybe from the same table."""
    exports = {document.name: document.value for document in plan.documents_of("export")}
    for name in records.exports():
        same = exports.get(name.rpartition("/")[2])
        if same is None or same.pipeline.name == pipeline.name:
            export = same if same and same.recorded_as == name else None
            yield from (
                record.file for record in records.of(name).values() if export is None or not _is_written(export, record, now)
            )


def _is_written(export: Export, record: Record, now: datetime) -> bool:
    if (export.window is None) != (not record.window):
        return False
    return place.name(export, window.chosen(export, record.window, now)) == record.file
