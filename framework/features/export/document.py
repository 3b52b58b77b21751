"""An export: the rows of a table in a window of time, as a file. No JVM is needed.

The file has the same name for the same window, and appears whole or not at all. `sluice export NAME` writes the last complete window,
`--window 2026-W46` a certain one; Dagster writes it on the schedule. A window that is exported again, after late rows, replaces its file,
and the command says so. All rows come from one snapshot of the table, which the command names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean
from framework.base.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID
from framework.documents.draft import Draft, unknown
from framework.documents.pipeline.written import Pipeline as Spec
from framework.features.export import file_names
from framework.features.notices import NoticeUse, Notify, planned
from framework.language import timezones
from framework.language.kind import Kind
from framework.language.options import Document, OptionGroup, option
from framework.language.scalars import ColumnName, Scalar, Schedule, TableName
from framework.language.storage import Storage
from framework.plan import Pipeline, PlannedDocument
from framework.plan.export import Export as Planned, Window
from framework.plan.notice import Notice
from framework.plan.storage import SCHEME

EXAMPLE = """\
export: weekly_trades
from: {table: markets.flagged_stock_trades}
schedule: "0 6 * * 1"
window: {last: week, by: _kafka_timestamp}
query: select symbol, count(*) as trades from input group by symbol order by symbol
file: {format: csv, to: "exports/weekly_trades_{window_start:%Y-%m-%d}.csv"}
"""
_TIMES = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
_INSIDE = "write a path inside the project, such as `exports/…`, or `s3://bucket/…`"
_LATER_PLACES = ("s3:", "s3a:", "gs:", "abfs:", "http:", "https:")
_IN_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^/\s](.*\S)?")

Query = Annotated[
    str,
    Scalar(noun="a query", code="bad-query", example="select * from input", pattern=r"\S",
           rule="one select over `input`, in DuckDB's SQL"),
]  # fmt: skip
Path = Annotated[
    str,
    Scalar(noun="a path", code="bad-location", example="exports/weekly_{window_start:%Y-%m-%d}.csv", pattern=r"^\S(.*\S)?$(?!\n)",
           rule="a path inside the project, or `s3://bucket/path`; `{window_start:%Y-%m-%d}` is when the window begins"),
]  # fmt: skip


@dataclass(frozen=True)
class From(OptionGroup):
    """The table."""

    table: TableName = option("A table of a pipeline.", example="markets.flagged_stock_trades")


@dataclass(frozen=True)
class Lasting(OptionGroup):
    """The rows of the last complete window."""

    last: Literal["hour", "day", "week", "month"] = option(
        "How long a window is. A week begins on Monday.", example="week", aka=["every", "size"]
    )
    by: ColumnName = option("The column with a row's time.", example="at", aka=["column", "on", "time"])
    timezone: str = option(
        "The time zone in which days and weeks begin.", default="UTC", example="Europe/Berlin", aka=timezones.ALSO_CALLED
    )


@dataclass(frozen=True)
class File(OptionGroup):
    """The file."""

    format: Literal["csv", "parquet", "jsonl"] = option(
        "`csv`; `parquet`; or `jsonl`, one JSON object in each line.", example="csv", aka=["type"]
    )
    to: Path = option(
        "The path, inside the project or in a bucket: `s3://bucket/path`. With a `window` it names `{window_start:…}` or"
        " `{window_end:…}`, so that each window has a file.",
        example='"exports/weekly_{window_start:%Y-%m-%d}.csv"', aka=["path", "location"],
    )  # fmt: skip
    for_spreadsheets: bool = option(
        "For `csv`: marks the file as UTF-8 for spreadsheets, and puts `'` before texts that one would compute.",
        default=True, example="false",
    )  # fmt: skip


@dataclass(frozen=True)
class Export(Document):
    """The rows of a table in a window of time, as a file."""

    from_: From = option("The table that is exported.", example="{table: markets.flagged_stock_trades}")
    file: File = option("The file.", example='{format: csv, to: "exports/trades_{window_start:%Y-%m-%d}.csv"}')
    doc: str | None = option("A description.", default=None, example="Trades for the desk, each Monday.")
    schedule: Schedule | None = option(
        "When Dagster writes the file, in UTC.", default=None, example='"0 6 * * 1"', aka=["cron", "run"]
    )
    window: Lasting | None = option(
        "Which rows; default: all of the table.", default=None, example="{last: week, by: at}", aka=["rows"]
    )
    query: Query = option(
        "One select over `input`, the rows of the window, in DuckDB's SQL.",
        default="select * from input", example="select symbol, count(*) as trades from input group by symbol", aka=["sql", "select"],
    )  # fmt: skip
    notify: tuple[Notify, ...] = option(
        "Who is told of the file, once it is written.",
        default=(),
        example="[{email: {to: [sales@example.com]}}]",
        aka=["alert", "send"],
    )
    storage: Storage | None = option(
        "The object store of a file in a bucket.", default=None, example="{region: eu-central-1}", aka=["s3", "object_store"]
    )

    def servers(self) -> Iterable[str | None]:
        return self.storage.servers() if self.storage else ()

    def problems(self) -> Iterable[Problem]:
        if self.gaps & {"file", "window"} or "to" in self.file.gaps:
            return
        where, target = self.file.place("to"), self.file.to
        if target.startswith(SCHEME):
            yield from self._problems_in_bucket()
        elif target.lower().startswith(_LATER_PLACES):
            message = f"a file in `{target.partition(':')[0]}:` is not in this version of Sluice"
            yield Problem(where, "not-in-this-version", message, _INSIDE)
        elif self.storage is not None:
            message = f"`storage` has no effect: `{target}` is in no object store"
            yield Problem(self.key_place("storage"), "unused-key", message, "remove it, or write `to: s3://bucket/…`")
        if target.startswith(("/", "~")) or ".." in target.split("/"):
            yield Problem(where, "path-goes-up", f"`{target}` leaves the project", _INSIDE)
        elif (first_folder := posixpath.normpath(target).partition("/")[0]) in (".sluice", where.file.partition("/")[0]):
            reason = "keeps its own files" if first_folder == ".sluice" else "reads the specs"
            yield Problem(where, "bad-location", f"`{target}` is in `{first_folder}`, where Sluice {reason}", _INSIDE)
        elif (fault := file_names.bad_template(target, bool(self.window))) is not None:
            yield Problem(
                where, "bad-template", fault, "write `{window_start:%Y-%m-%d}`, with parts of a date as `strftime` has them"
            )
        elif shared_fault := self._shared_file():
            yield Problem(where, "bad-template", *shared_fault)
        if self.file.format != "csv" and self.file.node.get("for_spreadsheets") is not None:
            message = f"`for_spreadsheets` has no effect with `format: {self.file.format}`"
            yield Problem(self.file.key_place("for_spreadsheets"), "unused-key", message, "remove it, or write `format: csv`")
        if self.window:
            yield from timezones.problems(self.window, self.window.timezone)

    def _shared_file(self) -> tuple[str, str] | None:
        window = self.window
        if window is None or window.gaps or not timezones.is_timezone(window.timezone):
            return None
        return file_names.shared(self.file.to, window.last, ZoneInfo(window.timezone))

    def _problems_in_bucket(self) -> Iterator[Problem]:
        if not _IN_BUCKET.fullmatch(self.file.to):
            message = f"`{self.file.to}` names no bucket with a file in it"
            hint = "write `s3://bucket/path`; a bucket has 3 to 63 lowercase letters, digits, `-` and `.`"
            yield Problem(self.file.place("to"), "bad-location", message, hint)
        if self.storage is None and "storage" not in self.gaps:
            message = f"there is no `storage` for `{self.file.to}`"
            yield Problem(
                self.file.place("to"), "no-storage", message, "add `storage: {region: …}`, or `{endpoint: …}` and its keys"
            )


def plan_exports(draft: Draft, documents: tuple[Export, ...]) -> None:
    by_table = {pipeline.table.identifier: pipeline for pipeline in draft.pipelines}
    files: dict[str, str] = {}
    for spec in documents:
        pipeline = None if "from" in spec.gaps or "table" in spec.from_.gaps else by_table.get(spec.from_.table)
        if pipeline is None:
            _refuse_unknown(draft, spec, by_table)
            continue
        if spec.gaps or not _has_time(draft, spec, pipeline):
            continue
        if any(column.type == VOID for column in pipeline.table.columns):
            continue  # why a column's type is unknown was reported
        target = spec.file.to if spec.file.to.startswith(SCHEME) else posixpath.normpath(spec.file.to)
        if target in files:
            message = f"`{spec.file.to}` is the file of the export `{files[target]}`, too"
            draft.problems.append(Problem(spec.file.place("to"), "duplicate-file", message, "give each export a file of its own"))
        files[target] = spec.name
        planned = replace(_planned(spec, pipeline), notices=tuple(_notices(draft, spec)))
        draft.documents.append(
            PlannedDocument(kind="export", name=spec.name, where=spec.place(), value=planned, says=tuple(_says(planned)))
        )


def _refuse_unknown(draft: Draft, spec: Export, by_table: Iterable[str]) -> None:
    """Reports a table that no pipeline writes, unless a pipeline has problems, which were reported."""
    if "from" in spec.gaps or "table" in spec.from_.gaps:
        return
    written = draft.written.of(Spec)
    tables = {
        spec_pipeline.into.table
        for spec_pipeline in written
        if "into" not in spec_pipeline.gaps and "table" not in spec_pipeline.into.gaps
    }
    if spec.from_.table not in tables and len(tables) == sum(document.kind == "pipeline" for document in draft.written.documents):
        unknown(draft, "table", spec.from_.table, spec.from_.place("table"), by_table)


def _has_time(draft: Draft, spec: Export, pipeline: Pipeline) -> bool:
    """Whether the column of the window is in the table, and is a time."""
    if spec.window is None or spec.window.gaps:
        return spec.window is None
    time_column = spec.window.by
    columns = {column.name: column.type for column in pipeline.table.columns}
    times = [f"`{name}`" for name, type_ in columns.items() if type_ in _TIMES]
    hint = f"the table has {', '.join(times)}" if times else "the table keeps no time"
    if time_column not in columns:
        message = f"there is no column `{time_column}` in {pipeline.table.identifier}"
        draft.problems.append(
            Problem(spec.window.place("by"), "unknown-column", message, did_you_mean(time_column, columns, hint))
        )
    elif columns[time_column] == VOID:
        return False
    elif columns[time_column] not in _TIMES:
        draft.problems.append(
            Problem(spec.window.place("by"), "not-a-time", f"`{time_column}` is {columns[time_column]}, not a time", hint)
        )
    elif columns[time_column] == DATE and spec.window.last == "hour":
        draft.problems.append(
            Problem(spec.window.place("by"), "not-a-time", f"`{time_column}` is a date, and a date has no hour", "`last: day`")
        )
    else:
        return True
    return False


def _notices(draft: Draft, spec: Export) -> Iterator[Notice]:
    def template(text: str, where: Where) -> bool:
        """Whether a text can be filled in for each window."""
        wrong = file_names.bad_template(text, bool(spec.window), "a text")
        if wrong:
            hint = "write `{window_start:%d %b}`, with parts of a date as `strftime` has them"
            draft.problems.append(Problem(where, "bad-template", wrong, hint))
        return not wrong

    yield from planned(spec.notify, NoticeUse("export", template, linked=spec.storage is not None), draft)


def _planned(spec: Export, pipeline: Pipeline) -> Planned:
    written_window = spec.window
    window = Window(last=written_window.last, by=written_window.by, timezone=written_window.timezone) if written_window else None
    return Planned(
        name=spec.name, where=spec.place(), doc=spec.doc or "", pipeline=pipeline, schedule=spec.schedule, window=window,
        query=spec.query.strip().rstrip(";"), query_where=spec.place("query") if spec.node.get("query") else spec.place(),
        format=spec.file.format, to=spec.file.to, for_spreadsheets=spec.file.for_spreadsheets,
        storage=spec.storage.planned() if spec.storage else None,
    )  # fmt: skip


def _says(export: Planned) -> Iterable[str]:
    table = export.pipeline.table.identifier
    window = export.window
    yield f"from {table}" + (f", the last {window.last} by {window.by}, {window.timezone}" if window else "")
    yield export.query
    yield f"as {export.format} to {export.to}"
    yield from (f"then {notice.says}" for notice in export.notices)
    if export.schedule:
        yield f"at {export.schedule} (UTC)"


KIND = Kind(Export, plan_exports, needs=("pipeline", "catalog", "mail"), same_everywhere=True)
