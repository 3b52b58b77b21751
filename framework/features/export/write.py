"""Writes the file of an export: whole or not at all, from one snapshot of the table.

Cost: memory is bounded; what does not fit goes to scratch files. DuckDB reads those files of the table whose bounds meet the window.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from framework.base.errors import SluiceError
from framework.base.types import DATE, TIMESTAMP
from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.core.query.database import interruptible, opened, scratch
from framework.features.export import records
from framework.features.export.bucket import in_bucket
from framework.features.export.place import Link, Place, in_folder
from framework.features.export.records import Record
from framework.features.export.statement import checked
from framework.features.export.window import Span
from framework.plan import SecretStore
from framework.plan.export import Export
from framework.sql.standard import identifier, literal
from framework.systems import secret_uses

_MEMORY = "700MB"
_MARK = b"\xef\xbb\xbf"  # tells spreadsheets that a file is UTF-8
_COMPUTED = r"^[=+\-@\t\r]"  # a text that a spreadsheet would compute


@dataclass(frozen=True, kw_only=True)
class ExportDone:
    """A written file. `before` is the record of the file that the export wrote for the same window earlier."""

    export: str
    table: str
    span: Span | None
    record: Record
    before: Record | None
    link: Link | None  # to a file in an object store


@secret_uses.at_work()
def write(export: Export, span: Span | None, moment: datetime, secrets: SecretStore) -> ExportDone:
    catalog, identifier = export.pipeline.table.catalog, export.pipeline.table.identifier
    table = metadata.read(catalog, identifier)
    if table is None or table.main is None:
        hint = f"run `sluice run {export.pipeline.name}`, which writes it, first"
        raise SluiceError("no-table", f"the table {identifier}, which {export.name} exports, does not exist yet", hint)
    snapshot = int(table.main["snapshot-id"])
    place = in_bucket(export, span, secrets) if export.storage else in_folder(export, span)
    scratch_folder = Path(scratch())
    try:
        with place.draft(scratch_folder) as draft:
            rows = _copied(export, span, table, snapshot, draft, scratch_folder)
            record = _record(place, span, snapshot, rows, draft, moment)
            former_record = records.by_window(export.journal_name).get(record.window)
            if former_record is not None and (former_record.sha256, former_record.file) == (record.sha256, record.file):
                record = replace(record, told=former_record.told)
            place.take(draft, _about(export, snapshot, span))
    finally:
        shutil.rmtree(scratch_folder, ignore_errors=True)
    records.add(export.journal_name, record)
    return ExportDone(export=export.name, table=identifier, span=span, record=record, before=former_record, link=place.link)


def _record(place: Place, span: Span | None, snapshot: int, rows: int, draft: Path, moment: datetime) -> Record:
    return Record(
        window=span.name if span else "", file=place.file, snapshot=snapshot, rows=rows,
        bytes=draft.stat().st_size, sha256=_digest(draft), at=moment.isoformat(timespec="seconds"),
    )  # fmt: skip


def _copied(export: Export, span: Span | None, table: Metadata, snapshot: int, draft: Path, scratch_folder: Path) -> int:
    """Writes the rows, and returns their number."""
    files = table.files
    location = str(table.document["location"])
    folders = [files.around(location), files.path(location), str(draft.parent)]
    database = opened(folders, str(scratch_folder), access=[files.access(location)], memory=_MEMORY)
    try:
        scan = f"iceberg_scan({literal(table.file)}, snapshot_from_id = {snapshot})"
        condition = f" WHERE {_within(export, span)}" if span else ""
        with ThreadPoolExecutor(1) as worker:

            def run(sql: str) -> Any:
                return interruptible(worker, database, lambda: database.execute(sql).fetchone())

            run(f"CREATE VIEW input AS SELECT * FROM {scan}{condition}")
            select = _selected(export, database)
            options = _options(export, _about(export, snapshot, span))
            (rows,) = run(f"COPY ({select}\n) TO {literal(str(draft))} ({options})")
    finally:
        database.close()
    if export.format == "csv" and export.for_spreadsheets:
        _mark(draft)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    return int(rows)


def _within(export: Export, span: Span) -> str:
    """SQL that is true for a row in the window. A time without a zone is a time of the window's zone."""
    assert export.window is not None
    time_column = identifier(export.window.by)
    type_ = next(column.type for column in export.pipeline.table.columns if column.name == export.window.by)
    if type_ == DATE:
        start, end = (f"DATE '{time.date().isoformat()}'" for time in (span.start, span.end))
    elif type_ == TIMESTAMP:
        start, end = (f"TIMESTAMPTZ '{time.isoformat(sep=' ')}'" for time in (span.start, span.end))
    else:
        start, end = (f"TIMESTAMP '{time.replace(tzinfo=None).isoformat(sep=' ')}'" for time in (span.start, span.end))
    return f"{time_column} >= {start} AND {time_column} < {end}"


def _selected(export: Export, database: duckdb.DuckDBPyConnection) -> str:
    """The query. For a spreadsheet, it puts `'` before texts that the spreadsheet would compute."""
    query = checked(export.query)
    if export.format != "csv" or not export.for_spreadsheets:
        return query
    described = database.execute(f"DESCRIBE SELECT * FROM ({query}\n) AS answer").fetchall()
    columns = []
    for name, type_, *_ in described:
        column = identifier(name)
        safe = f"CASE WHEN regexp_matches({column}, {literal(_COMPUTED)}) THEN '''' || {column} ELSE {column} END AS {column}"
        columns.append(safe if type_ == "VARCHAR" else column)
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS answer"


def _about(export: Export, snapshot: int, span: Span | None) -> Mapping[str, str]:
    """The metadata about the rows, for file formats and object stores that keep metadata."""
    return {
        "sluice_table": export.pipeline.table.identifier,
        "sluice_snapshot": str(snapshot),
        "sluice_window": span.name if span else "",
    }


def _options(export: Export, about: Mapping[str, str]) -> str:
    if export.format == "csv":
        return "FORMAT csv, HEADER true, USE_TMP_FILE false"
    if export.format == "jsonl":
        return "FORMAT json, USE_TMP_FILE false"
    values = ", ".join(f"{name}: {literal(value)}" for name, value in about.items())
    return f"FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {{{values}}}"


def _mark(draft: Path) -> None:
    """Puts the mark of UTF-8 at the beginning of the file."""
    marked = draft.with_name(f"{draft.name}.marked")
    with draft.open("rb") as plain, marked.open("wb") as whole:
        whole.write(_MARK)
        shutil.copyfileobj(plain, whole, 1 << 20)
    marked.replace(draft)


def _digest(file: Path) -> str:
    file_digest = hashlib.sha256()
    with file.open("rb") as stream:
        while part := stream.read(1 << 20):
            file_digest.update(part)
    return file_digest.hexdigest()
