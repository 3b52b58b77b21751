"""Writes the file of an export: whole or not at all, from one snapshot of the table.

Cost: memory is bounded; what does not fit goes to scratch files. DuckDB reads those files of the table whose bounds meet the window.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from framework.engine.export import records
from framework.engine.export.records import Record
from framework.engine.export.statement import checked
from framework.engine.export.window import Span
from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.query.database import interruptible, opened, quoted, quoted_text, scratch
from framework.errors import SluiceError
from framework.model.export import Export
from framework.types import DATE, TIMESTAMP

_MEMORY = "700MB"
_MARK = b"\xef\xbb\xbf"  # by which spreadsheets know UTF-8
_COMPUTED = r"^[=+\-@\t\r]"  # a text that a spreadsheet would compute


@dataclass(frozen=True, kw_only=True)
class Done:
    """A written file. `before` is what the export wrote for the same window earlier."""

    export: str
    table: str
    span: Span | None
    record: Record
    before: Record | None


def write(export: Export, span: Span | None, now: datetime) -> Done:
    catalog, identifier = export.pipeline.table.catalog, export.pipeline.table.identifier
    table = metadata.read(catalog, identifier)
    if table is None or table.main is None:
        hint = f"run `sluice run {export.pipeline.name}`, which writes it, first"
        raise SluiceError("no-table", f"the table {identifier}, which {export.name} exports, does not exist yet", hint)
    snapshot = int(table.main["snapshot-id"])
    target = _target(export, span)
    with _draft(target) as draft:
        rows = _copied(export, span, table, snapshot, draft)
        record = Record(
            window=span.name if span else "", file=str(target.relative_to(Path.cwd().resolve())), snapshot=snapshot, rows=rows,
            bytes=draft.stat().st_size, sha256=_digest(draft), at=now.isoformat(timespec="seconds"),
        )  # fmt: skip
        before = records.of(export.name).get(record.window)
        draft.replace(target)
    records.add(export.name, record)
    return Done(export=export.name, table=identifier, span=span, record=record, before=before)


def _target(export: Export, span: Span | None) -> Path:
    """The file, inside the project also after links are followed."""
    name = export.to.format(window_start=span.start, window_end=span.end) if span else export.to.format()
    target = Path.cwd() / name
    target.parent.mkdir(parents=True, exist_ok=True)
    real = target.parent.resolve() / target.name
    if not real.is_relative_to(Path.cwd().resolve()) or target.is_dir():
        why = "is a folder" if target.is_dir() else "leads out of the project"
        raise SluiceError("bad-location", f"{name}, the file of {export.name}, {why}", "write another path under `file: {to: …}`")
    return real


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """The name of a file beside the target, which is on the same disk."""
    draft = target.with_name(f".{target.name[:100]}-{uuid.uuid4().hex}.part")
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _copied(export: Export, span: Span | None, table: Metadata, snapshot: int, draft: Path) -> int:
    """Writes the rows; how many."""
    scratch_folder = scratch()
    files = table.files
    folders = [files.path(files.root), files.path(str(table.document["location"])), str(draft.parent)]
    try:
        database = opened(folders, scratch_folder, memory=_MEMORY)
        try:
            scan = f"iceberg_scan({quoted_text(table.file)}, snapshot_from_id = {snapshot})"
            where = f" WHERE {_within(export, span)}" if span else ""
            with ThreadPoolExecutor(1) as worker:

                def run(sql: str) -> Any:
                    return interruptible(worker, database, lambda: database.execute(sql).fetchone())

                run(f"CREATE VIEW input AS SELECT * FROM {scan}{where}")
                select = _selected(export, database)
                (rows,) = run(f"COPY ({select}) TO {quoted_text(str(draft))} ({_options(export, snapshot, span)})")
        finally:
            database.close()
    finally:
        shutil.rmtree(scratch_folder, ignore_errors=True)
    if export.format == "csv" and export.for_spreadsheets:
        _mark(draft)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    return int(rows)


def _within(export: Export, span: Span) -> str:
    """SQL of whether a row is of the window. A time without a zone is one of the window's zone."""
    assert export.window is not None
    by = quoted(export.window.by)
    type_ = next(column.type for column in export.pipeline.table.columns if column.name == export.window.by)
    if type_ == DATE:
        start, end = (f"DATE '{each.date().isoformat()}'" for each in (span.start, span.end))
    elif type_ == TIMESTAMP:
        start, end = (f"TIMESTAMPTZ '{each.isoformat(sep=' ')}'" for each in (span.start, span.end))
    else:
        start, end = (f"TIMESTAMP '{each.replace(tzinfo=None).isoformat(sep=' ')}'" for each in (span.start, span.end))
    return f"{by} >= {start} AND {by} < {end}"


def _selected(export: Export, database: duckdb.DuckDBPyConnection) -> str:
    """The query; for a spreadsheet with `'` in front of texts that it would compute."""
    query = checked(export.query)
    if export.format != "csv" or not export.for_spreadsheets:
        return query
    described = database.execute(f"DESCRIBE ({query}\n)").fetchall()
    columns = []
    for name, type_, *_ in described:
        column = quoted(name)
        safe = f"CASE WHEN regexp_matches({column}, {quoted_text(_COMPUTED)}) THEN '''' || {column} ELSE {column} END AS {column}"
        columns.append(safe if type_ == "VARCHAR" else column)
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS answer"


def _options(export: Export, snapshot: int, span: Span | None) -> str:
    if export.format == "csv":
        return "FORMAT csv, HEADER true, USE_TMP_FILE false"
    if export.format == "jsonl":
        return "FORMAT json, USE_TMP_FILE false"
    about = {
        "sluice_table": export.pipeline.table.identifier,
        "sluice_snapshot": str(snapshot),
        "sluice_window": span.name if span else "",
    }
    values = ", ".join(f"{name}: {quoted_text(value)}" for name, value in about.items())
    return f"FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {{{values}}}"


def _mark(draft: Path) -> None:
    """Puts the mark of UTF-8 in front."""
    marked = draft.with_name(f"{draft.name}.marked")
    with draft.open("rb") as plain, marked.open("wb") as whole:
        whole.write(_MARK)
        shutil.copyfileobj(plain, whole, 1 << 20)
    marked.replace(draft)


def _digest(file: Path) -> str:
    whole = hashlib.sha256()
    with file.open("rb") as stream:
        while part := stream.read(1 << 20):
            whole.update(part)
    return whole.hexdigest()
