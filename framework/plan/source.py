"""Tables of other pipelines that a pipeline reads: the rows of one, a select over some, and one in which a step looks rows up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

from framework.base.types import BIGINT, TIMESTAMP
from framework.plan.catalog import Catalog
from framework.plan.topic import Column

FROM_COLUMNS = (
    Column("_from_time", TIMESTAMP, "When the source table got the commit after which the row is so"),
    Column("_from_batch", BIGINT, "Number of the batch that read the row"),
    Column("_from_commit", BIGINT, "Number of the commit of the source table that wrote the row"),
    Column("_from_row", BIGINT, "Id of the row in the source table"),
)
"""The columns of a source table's rows that put rows with keys in order."""
OLD = "_sluice_gone"
"""The column that tells whether a row is as it was before it was changed or deleted."""


@dataclass(frozen=True, kw_only=True)
class TableChanges:
    """A table of another pipeline that this pipeline reads."""

    pipeline: str
    catalog: Catalog
    identifier: str
    columns: tuple[Column, ...]  # the pipeline's own, without Kafka's columns
    kafka: tuple[Column, ...]
    reads: Literal["all", "added", "changes", "commits"] = "all"  # each batch; `commits`: the changes of one commit at a time
    rows_change: bool = False  # whether its pipeline also changes and deletes rows
    by_value: bool = False  # whether its rows have no ids that last
    keys: tuple[str, ...] = ()  # columns in which a row never changes
    versions: bool = False  # whether a key can have several rows, of which one is current
    event_time: str | None = None  # its column with a row's time, by the first topics
    partitions: tuple[str, ...] = ()  # columns by whose values its files are partitioned
    old: Literal["none", "deleted", "all"] = "none"  # of changes: whether deleted rows are read, and those before a change

    @property
    def partition(self) -> str:
        """The table's name in a position."""
        return f"{self.identifier}/0"

    @property
    def tables(self) -> tuple[TableChanges, ...]:
        """All tables that are read, which is this one."""
        return (self,)

    def with_tables(self, change: Callable[[TableChanges], TableChanges]) -> TableChanges:
        return change(self)


@dataclass(frozen=True, kw_only=True)
class SelectSource:
    """A select over tables of other pipelines, whose rows this pipeline reads. In the SQL the `names` stand for the tables. `apart` are
    columns of the one table by which rows can be computed alone, each with its name among the select's; `by_partition`: it is one, by
    which the files of both tables are partitioned."""

    says: tuple[str, ...]
    sql: str
    names: tuple[str, ...]
    tables: tuple[TableChanges, ...]
    columns: tuple[Column, ...]
    origins: tuple[tuple[str, tuple[str, ...]], ...]  # of each column, those of the tables with their names in front
    apart: tuple[tuple[str, str], ...]
    by_partition: bool = False
    kafka: tuple[Column, ...] = ()
    reads: Literal["all"] = "all"
    event_time: None = None
    old: Literal["none"] = "none"

    @property
    def catalog(self) -> Catalog:
        return self.tables[0].catalog

    @property
    def identifier(self) -> str:
        """The names of the select's tables."""
        return ", ".join(table.identifier for table in self.tables)

    @property
    def pipeline(self) -> str:
        """The names of the pipelines that write the select's tables."""
        return " ".join(table.pipeline for table in self.tables)

    def with_tables(self, change: Callable[[TableChanges], TableChanges]) -> SelectSource:
        return replace(self, tables=tuple(map(change, self.tables)))


@dataclass(frozen=True)
class Lookup:
    """A table that a step looks rows up in, by columns that are its keys. `snapshot` is the one that a batch reads; None: the newest. A row
    without a match waits `within` so many seconds; `now` is the time of a batch in microseconds."""

    source: TableChanges
    on: tuple[str, ...]
    take: tuple[str, ...]
    _: KW_ONLY
    within: int | None = None
    snapshot: int | None = field(default=None, compare=False, repr=False)
    rows: int = field(default=0, compare=False, repr=False)  # of that snapshot
    now: int | None = field(default=None, compare=False, repr=False)
