"""Pipelines that are paused since some time."""

from __future__ import annotations

from datetime import datetime

from framework.base import iso_times
from framework.core.rules import journal


def pause(*names: str, since: datetime) -> None:
    for name in names:
        record = journal.pause(name)
        file = journal.file(name)
        file.write_text(file.read_text().replace(str(record.paused), iso_times.text(since.replace(microsecond=0))))
