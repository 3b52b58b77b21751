"""Tells of a written file: by each of the export's notices, whatever becomes of the others.

Guarantee: each is sent at least once for each content of a file, also if a former try failed; and again only after a crash between
sending it and noting that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from framework.base import amounts, iso_times
from framework.base.errors import SluiceError
from framework.base.patience import NOTICE_AGAIN
from framework.features.export import records
from framework.features.export.write import Done
from framework.plan import SecretStore, digest
from framework.plan.export import Export
from framework.plan.notice import About, Notice, NotSentYet


def notify(export: Export, done: Done, secrets: SecretStore) -> Iterator[str]:
    """Sends the notices, and gives in words which were sent. Failures are raised at the end: the file is written."""
    failed: list[SluiceError] = []
    tells = about(export, done)
    record = done.record
    for notice in export.notices:
        if digest.notice_id(notice) in record.told:
            yield f"not sent again for the same content: {notice.says}"
            continue
        try:
            yield _sent(notice, tells, secrets)
        except SluiceError as error:
            failed.append(error)
            continue
        record = replace(record, told=(*record.told, digest.notice_id(notice)))
        records.add(export.recorded_as, record)
    if failed:
        first = failed[0]
        messages = "; ".join(error.message for error in failed)
        raise SluiceError(first.code, f"{done.record.file} is written, and not all were told of it: {messages}", first.hint)


def _sent(notice: Notice, tells: About, secrets: SecretStore) -> str:
    for seconds in NOTICE_AGAIN:
        try:
            return notice.send(notice, tells, secrets)
        except NotSentYet:
            time.sleep(seconds)
    return notice.send(notice, tells, secrets)


def about(export: Export, done: Done) -> About:
    record, span = done.record, done.span
    window = f" of {span.name}" if span else ""
    lines = [
        f"{done.export}{window}: {amounts.counted(record.rows, 'row')}, {amounts.size(record.bytes)}",
        *([f"from {iso_times.text(span.start)} to {iso_times.text(span.end)}"] if span else []),
        f"from snapshot {record.snapshot} of the table {done.table}",
        *(
            [f"replaces the file of {iso_times.of_text(done.before.at)}, which had {amounts.counted(done.before.rows, 'row')}"]
            if done.before
            else []
        ),
    ]
    document = {
        "export": done.export, "table": done.table, "window": record.window or None,
        "window_start": iso_times.text(span.start) if span else None, "window_end": iso_times.text(span.end) if span else None,
        "file": record.file, "rows": record.rows, "bytes": record.bytes, "sha256": record.sha256, "snapshot": str(record.snapshot),
        "replaces": iso_times.of_text(done.before.at) if done.before else None,
    }  # fmt: skip
    window_times = {"window_start": span.start, "window_end": span.end} if span else {}
    return About(
        title=f"{done.export}{f' {span.name}' if span else ''}", lines=tuple(lines), document=document,
        file=record.file if done.link else str(Path(record.file).absolute()), content=None if done.link else Path(record.file),
        content_type=export.content_type, link=_link(done), bytes=record.bytes, window=window_times,
    )  # fmt: skip


def _link(done: Done) -> Callable[[int], tuple[str, datetime]] | None:
    link = done.link
    if link is None:
        return None

    def valid_for(seconds: int) -> tuple[str, datetime]:
        now = datetime.now(timezone.utc)
        return link(seconds, now), now + timedelta(seconds=seconds)

    return valid_for
