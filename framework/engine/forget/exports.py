"""Files of exports in which a person may be: each is written again, under the same name, from the table as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from framework.engine.export import records, window
from framework.engine.export.records import Record
from framework.engine.export.write import Done, write
from framework.model import Pipeline, Plan
from framework.model.export import Export


def written(plan: Plan, pipeline: Pipeline) -> Iterator[tuple[Export, Record]]:
    """The files that exports of the table have written, and that are still there as far as is known."""
    for document in plan.documents_of("export"):
        export: Export = document.value
        if export.pipeline.name == pipeline.name:
            for record in records.of(export.name).values():
                if export.storage or Path(record.file).exists():
                    yield export, record


def write_again(plan: Plan, export: Export, record: Record, now: datetime) -> Done:
    return write(export, window.chosen(export, record.window, now), now, plan.secrets)
