"""Catalogs and tables, and how rows are written to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Literal

from framework.errors import Where
from framework.model.accumulated import MEASURES, Accumulated
from framework.model.column_sql import ColumnSql
from framework.model.side_table import BAD_ROW_COLUMNS, SideTable
from framework.model.topic import Column, SecretStore
from framework.types import BIGINT, TIMESTAMP

IS_CURRENT = "is_current"
VERSION = {
    "valid_from": "Since when the row was so",
    "valid_to": "Until when it was so: then another version of its key came, or its end; null of a current one",
    IS_CURRENT: "Whether it is the newest version of its key, and not deleted",
}  # columns of a table that keeps all versions


@dataclass(frozen=True)
class Listing:
    """The part of a catalog's document about another catalog, which lists its tables too. Without `namespace` under their own names."""

    catalog: str
    namespace: str | None
    where: Where = field(compare=False, repr=False)


@dataclass(frozen=True)
class Catalog:
    name: str
    type: str  # a file of `framework.catalogs`
    options: Any = None  # as that file declares them
    _: KW_ONLY
    secrets: SecretStore = field(default_factory=SecretStore)  # those that the options name
    publish: tuple[Listing, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        """With the options that are set in a row: a digest of plans, which is kept, is made of it."""
        options = (
            {each.name: getattr(self.options, each.name) for each in fields(self.options) if each.repr} if self.options else {}
        )
        named = {"name": self.name, "type": self.type, **options}
        return f"Catalog({', '.join(f'{name}={value!r}' for name, value in named.items() if value is not None)})"


@dataclass(frozen=True)
class PartitionField:
    """A column and its partition transform: identity, year, month, day, hour, bucket or truncate."""

    transform: str
    column: str
    width: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.width}, ' if self.width else ''}{self.column})"


@dataclass(frozen=True, kw_only=True)
class SchemaChanges:
    """The schema changes, from the spec or the registry, that a run applies to its table. A column never gets a narrower type."""

    add: Literal["allow", "refuse"] = "allow"
    widen: Literal["allow", "refuse"] = "allow"
    drop: Literal["keep", "refuse"] = "keep"
    rename: Literal["allow", "refuse"] = "refuse"
    narrow: Literal["allow", "refuse"] = "refuse"


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """Rows with keys. The table keeps the newest row of each key, or with `versions` all rows. Of two rows with the same key the
    newer one has the greater `order`, compared column by column; null is the oldest."""

    keys: tuple[str, ...]
    order: tuple[str, ...]
    versions: bool
    deletes: ColumnSql | None  # true for a row that deletes the rows of its key
    ends: str | None  # SQL over a message, true for one that deletes the rows of its key whatever the steps do
    truncates: str | None  # SQL over a message that deletes the rows of all keys
    remember: int  # seconds that a deleted key is remembered
    says: str  # the rule for deletes, in words
    stands_in: bool  # whether Kafka's timestamp replaces the `order` of a message that deletes
    unsent: tuple[tuple[str, str], ...] = ()  # columns, and SQL over `?` that is true for an unchanged value that was not sent

    @property
    def words(self) -> str:
        """A description of the keys. A table keeps its rows as long as this text stays the same."""
        keys, order = ", ".join(self.keys), self.order[0]
        return f"all versions of each {keys}, by {order}" if self.versions else f"one row per {keys}, the newest by {order}"

    @property
    def deletes_state(self) -> State:
        """The deleted keys and the order of each delete, so that an older row that arrives late does not bring its key back."""
        columns = tuple(dict.fromkeys((*self.keys, *self.order)))
        return State("deletes", columns, self.words, keep_for=self.remember, outlives_rebuild=True)


@dataclass(frozen=True)
class State:
    """Rows that a pipeline remembers from batch to batch, with these columns of its table, on branches that no reader sees."""

    name: str  # letters
    columns: tuple[str, ...]
    says: str  # a description; a table keeps its state as long as this text stays the same
    _: KW_ONLY
    keep_for: int | None = None  # seconds; None: for ever
    outlives_rebuild: bool = False  # whether a rebuild adds to the state instead of starting with an empty one


@dataclass(frozen=True, kw_only=True)
class Table:
    catalog: Catalog
    namespace: str
    name: str
    columns: tuple[Column, ...]
    write: str
    partition_by: tuple[PartitionField, ...]
    sort_by: tuple[str, ...]
    format_version: int
    doc: str = ""
    masked: tuple[tuple[str, ...], ...] = ()  # paths of columns and fields of which there are no statistics
    keyed: Keyed | None = None
    accumulated: Accumulated | None = None
    step_states: tuple[State, ...] = ()  # of steps that remember rows
    adopt: bool = field(default=False, repr=False)  # whether a table that is there is taken over
    schema_changes: SchemaChanges = field(default=SchemaChanges(), repr=False)  # does not decide which rows are written
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)  # of the options of `into`

    @property
    def identifier(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row, if any do."""
        of = self.keyed or self.accumulated
        return of.keys if of else ()

    @property
    def rows_change(self) -> bool:
        """Whether a batch changes rows that are there."""
        return self.keyed is not None or self.accumulated is not None

    @property
    def readable(self) -> tuple[Column, ...]:
        """The columns that are for readers."""
        return tuple(column for column in self.columns if column.name != MEASURES)

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns that are computed from a message."""
        if self.accumulated:
            return self.accumulated.rows
        version_columns = VERSION if self.keyed and self.keyed.versions else ()
        return tuple(column for column in self.columns if column.name not in version_columns)

    @property
    def states(self) -> tuple[State, ...]:
        return (*((self.keyed.deletes_state,) if self.keyed else ()), *self.step_states)

    @property
    def words(self) -> str:
        """A description of keys and states. A table keeps its rows as long as this text stays the same. Empty without keys and states."""
        of = self.keyed or self.accumulated
        return "; ".join((*((of.words,) if of else ()), *(state.says for state in self.step_states)))

    @property
    def side_tables(self) -> tuple[SideTable, ...]:
        return (SideTable(self.bad_rows, BAD_ROW_COLUMNS),)

    @property
    def bad_rows(self) -> str:
        return f"{self.identifier}__bad_rows"


FROM_COLUMNS = (
    Column("_from_time", TIMESTAMP, "When the source table got the commit after which the row is so"),
    Column("_from_batch", BIGINT, "Number of the batch that read the row"),
    Column("_from_commit", BIGINT, "Number of the commit of the source table that wrote the row"),
    Column("_from_row", BIGINT, "Id of the row in the source table"),
)
"""Of rows of a table by which rows by keys are put in order."""
OLD = "_sluice_gone"
"""Of a row of a table whether it is as the row was before it was changed or deleted."""


@dataclass(frozen=True, kw_only=True)
class TableSource:
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
        """Its name in a position."""
        return f"{self.identifier}/0"

    @property
    def tables(self) -> tuple[TableSource, ...]:
        """All tables that are read: this one."""
        return (self,)

    def with_tables(self, change: Callable[[TableSource], TableSource]) -> TableSource:
        return change(self)


@dataclass(frozen=True, kw_only=True)
class SelectSource:
    """A select over tables of other pipelines, whose rows this pipeline reads. In the SQL the `names` stand for the tables. `apart` are
    columns of the one table by which rows can be computed alone, each with its name among the select's; `by_partition`: it is one, by
    which the files of both tables are partitioned."""

    says: tuple[str, ...]
    sql: str
    names: tuple[str, ...]
    tables: tuple[TableSource, ...]
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
        """The names of its tables."""
        return ", ".join(table.identifier for table in self.tables)

    @property
    def pipeline(self) -> str:
        """The names of the pipelines that write its tables."""
        return " ".join(table.pipeline for table in self.tables)

    def with_tables(self, change: Callable[[TableSource], TableSource]) -> SelectSource:
        return replace(self, tables=tuple(map(change, self.tables)))


@dataclass(frozen=True)
class Join:
    """A table that a step looks rows up in, by columns that are its keys. `snapshot` is the one that a batch reads; None: the newest. A row
    without a match waits `within` so many seconds; `now` is the time of a batch in microseconds."""

    source: TableSource
    on: tuple[str, ...]
    take: tuple[str, ...]
    _: KW_ONLY
    within: int | None = None
    snapshot: int | None = field(default=None, compare=False, repr=False)
    rows: int = field(default=0, compare=False, repr=False)  # of that snapshot
    now: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Reader:
    """Another pipeline's table that is made of the changes of a table."""

    catalog: Catalog
    identifier: str
    every_commit: bool  # whether it reads each commit by itself


@dataclass(frozen=True, kw_only=True)
class Thin:
    """The rule by which old snapshots are thinned out, in seconds."""

    all_for: int
    then_every: int
    for_: int
    then_every_hour: bool


@dataclass(frozen=True, kw_only=True)
class Maintain:
    """The settings for compaction and snapshot expiry, in bytes and seconds."""

    compact_to: int
    compact_every: int
    keep_snapshots_for: int
    keep_at_least: int
    thin: Thin
    orphans_after: int
