"""Sends the notices of a written file. A notice that fails does not stop the others.

Guarantee: each notice is sent at least once for each content of a file, also if an earlier try failed. It is sent again only
after a crash between sending it and recording that.
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
from framework.features.export.write import ExportDone
from framework.plan import SecretStore, digest
from framework.plan.export import Export
from framework.plan.notice import Notice, NoticeContent, NotSentYet, WrittenFile


def notify(export: Export, done: ExportDone, secrets: SecretStore) -> Iterator[str]:
    """Sends the notices, and returns in words which were sent. Failures are raised at the end, since the file is written."""
    failures: list[SluiceError] = []
    notice_content = about(export, done)
    record = done.record
    for notice in export.notices:
        if digest.notice_id(notice) in record.told:
            yield f"not sent again for the same content: {notice.says}"
            continue
        try:
            yield _sent(notice, notice_content, secrets)
        except SluiceError as error:
            failures.append(error)
            continue
        record = replace(record, told=(*record.told, digest.notice_id(notice)))
        records.add(export.journal_name, record)
    if failures:
        first_failure = failures[0]
        messages = "; ".join(error.message for error in failures)
        raise SluiceError(
            first_failure.code, f"{done.record.file} is written, and not all were told of it: {messages}", first_failure.hint
        )


def _sent(notice: Notice, content: NoticeContent, secrets: SecretStore) -> str:
    for seconds in NOTICE_AGAIN:
        try:
            return notice.send(notice, content, secrets)
        except NotSentYet:
            time.sleep(seconds)
    return notice.send(notice, content, secrets)


def about(export: Export, done: ExportDone) -> NoticeContent:
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
    return NoticeContent(
        title=f"{done.export}{f' {span.name}' if span else ''}", lines=tuple(lines), document=document, window=window_times,
        file=WrittenFile(
            location=record.file if done.link else str(Path(record.file).absolute()), content=None if done.link else Path(record.file),
            content_type=export.content_type, link=_link(done), bytes=record.bytes,
        ),
    )  # fmt: skip


def _link(done: ExportDone) -> Callable[[int], tuple[str, datetime]] | None:
    link = done.link
    if link is None:
        return None

    def valid_for(seconds: int) -> tuple[str, datetime]:
        moment = datetime.now(timezone.utc)
        return link(seconds, moment), moment + timedelta(seconds=seconds)

    return valid_for
