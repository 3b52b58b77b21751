"""The reader of each kind of source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from framework.core.rows.pins import NO_PINS, Pins
from framework.core.sources.select import SelectReader
from framework.core.sources.source import MessageStore, SourceWithCounts, TopicsReader
from framework.core.sources.table import ChangesReader, TableReader
from framework.plan import Catalog, Pipeline, SelectSource, TableChanges, Topics

if TYPE_CHECKING:
    from framework.core.iceberg.lake import TableStore


def reader_of(
    pipeline: Pipeline,
    messages: Callable[[], MessageStore],
    lake: Callable[[Catalog], TableStore] | None = None,
    pins: Pins = NO_PINS,
) -> SourceWithCounts:
    """The reader of what the pipeline reads. `messages` gives the cluster of its topics. Without a `lake`, rows of tables are counted,
    but cannot be read."""
    match pipeline.source:
        case Topics():
            return TopicsReader(pipeline, messages())
        case TableChanges() | SelectSource() as source:
            return _table_reader(pipeline, source, lake or _no_lake, pins)


def table_reader(pipeline: Pipeline) -> TableReader | SelectReader:
    """The reader that counts rows of the tables that are read."""
    source = pipeline.source
    assert not isinstance(source, Topics), f"{pipeline.name} reads messages"
    return _table_reader(pipeline, source, _no_lake, NO_PINS)


def _table_reader(
    pipeline: Pipeline, source: TableChanges | SelectSource, lake: Callable[[Catalog], TableStore], pins: Pins
) -> TableReader | SelectReader:
    match source:
        case SelectSource():
            return SelectReader(pipeline, source, lake)
        case TableChanges(reads="all"):
            return TableReader(pipeline, source, pins)
        case TableChanges():
            return ChangesReader(pipeline, source, pins, lake)


def _no_lake(catalog: Catalog) -> TableStore:
    raise AssertionError(f"rows of {catalog.name} are read only by a batch")
