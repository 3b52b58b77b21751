"""Exports: a part of a table, written to files by a schedule or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from framework.base.errors import Where
from framework.plan.notice import Notice
from framework.plan.pipeline import Pipeline, journal_name
from framework.plan.storage import Storage

Length = Literal["hour", "day", "week", "month"]
Format = Literal["csv", "parquet", "jsonl"]
CONTENT_TYPES: Mapping[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
}


@dataclass(frozen=True, kw_only=True)
class Window:
    """The last complete hour, day, week or month of a time zone, by a column with a time."""

    last: Length
    by: str
    timezone: str


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file of the rows of a table in one window. `query` is one select of DuckDB's SQL over `input`, or all of it."""

    name: str
    where: Where = field(compare=False, repr=False)
    doc: str
    pipeline: Pipeline  # which writes the table
    schedule: str | None
    window: Window | None
    query: str
    query_where: Where = field(compare=False, repr=False)
    format: Format
    to: str  # a path inside the project, or `s3://…`; with `{window_start:…}` in it
    storage: Storage | None  # of `s3://…`
    for_spreadsheets: bool
    notices: tuple[Notice, ...] = ()

    @property
    def content_type(self) -> str:
        """The content type of the file in mails and object stores, so that a browser or a mail program opens it."""
        return CONTENT_TYPES[self.format]

    @property
    def journal_name(self) -> str:
        """The export's name in the records of this machine."""
        return journal_name(self.pipeline.environment, self.name)
