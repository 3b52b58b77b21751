"""What is written: catalogs, tables, and how rows get into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from framework.errors import Where
from framework.model.column_sql import ColumnSql
from framework.model.side_table import BAD_ROW_COLUMNS, SideTable
from framework.model.topic import Column

IS_CURRENT = "is_current"
VERSION = {
    "valid_from": "Since when the row was so",
    "valid_to": "Until when it was so: then another version of its key came, or its end; null of a current one",
    IS_CURRENT: "Whether it is the newest version of its key, and not deleted",
}  # columns of a table that keeps all versions


@dataclass(frozen=True)
class Catalog:
    name: str
    type: str  # a file of `framework.catalogs`
    options: Any = None  # as that file declares them

    def __repr__(self) -> str:
        """With the options in a row: a digest of plans, which is kept, is made of it."""
        return f"Catalog(name={self.name!r}, type={self.type!r}, {repr(self.options).partition('(')[2]}"


@dataclass(frozen=True)
class PartitionField:
    """identity, year, month, day, hour, bucket or truncate of a column."""

    transform: str
    column: str
    width: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.width}, ' if self.width else ''}{self.column})"


@dataclass(frozen=True, kw_only=True)
class SchemaChanges:
    """Which differences between a spec, or the registry, and a table a run takes. A column that is narrower now keeps its type."""

    add: Literal["allow", "refuse"] = "allow"
    widen: Literal["allow", "refuse"] = "allow"
    drop: Literal["keep", "refuse"] = "keep"
    rename: Literal["allow", "refuse"] = "refuse"
    narrow: Literal["allow", "refuse"] = "refuse"


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """Rows that go by their keys: one of each, the newest, or with `versions` all of them. Of two with the same key the newer is the
    one whose `order` is greater, column by column; null is the oldest."""

    keys: tuple[str, ...]
    order: tuple[str, ...]
    versions: bool
    deletes: ColumnSql | None  # that is true of a row that deletes those of its key
    ends: str | None  # SQL over a message, which does so whatever the steps say
    truncates: str | None  # SQL over a message that deletes the rows of all keys
    remember: int  # seconds that a deleted key is known for
    says: str  # what deletes, in words
    stands_in: bool  # whether Kafka's timestamp takes the place of the `order` of a message that deletes
    unsent: tuple[tuple[str, str], ...] = ()  # columns, and SQL over `?` of whether a value is still the same and was not sent

    @property
    def words(self) -> str:
        """What must stay as it is for a table to keep its rows."""
        keys, order = ", ".join(self.keys), self.order[0]
        return f"all versions of each {keys}, by {order}" if self.versions else f"one row per {keys}, the newest by {order}"

    @property
    def deletes_state(self) -> State:
        """Which keys were deleted, and how new they were: rows that are older and come late do not come back."""
        columns = tuple(dict.fromkeys((*self.keys, *self.order)))
        return State("deletes", columns, self.words, keep_for=self.remember, outlives_rebuild=True)


@dataclass(frozen=True)
class State:
    """What a pipeline remembers from batch to batch: rows with these columns of its table, on branches that no reader sees."""

    name: str  # letters
    columns: tuple[str, ...]
    says: str  # what must stay as it is for a table to keep its state
    _: KW_ONLY
    keep_for: int | None = None  # seconds; None: for good
    outlives_rebuild: bool = False  # whether a rebuild adds to it, instead of beginning with none


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
    keyed: Keyed | None = None
    step_states: tuple[State, ...] = ()  # of steps that remember rows
    schema_changes: SchemaChanges = field(default=SchemaChanges(), repr=False)  # no part of what rows come out
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)  # of the options of `into`

    @property
    def identifier(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns that come of a message."""
        made = VERSION if self.keyed and self.keyed.versions else ()
        return tuple(column for column in self.columns if column.name not in made)

    @property
    def states(self) -> tuple[State, ...]:
        return (*((self.keyed.deletes_state,) if self.keyed else ()), *self.step_states)

    @property
    def words(self) -> str:
        """What must stay as it is for a table to keep its rows; nothing of a table with a row per message."""
        return "; ".join((*((self.keyed.words,) if self.keyed else ()), *(state.says for state in self.step_states)))

    @property
    def side_tables(self) -> tuple[SideTable, ...]:
        return (SideTable(self.bad_rows, BAD_ROW_COLUMNS),)

    @property
    def bad_rows(self) -> str:
        return f"{self.identifier}__bad_rows"


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """A table of another pipeline, from which this one is computed."""

    pipeline: str
    catalog: Catalog
    identifier: str
    columns: tuple[Column, ...]  # the pipeline's own, without what Kafka says
    kafka: tuple[Column, ...]


@dataclass(frozen=True, kw_only=True)
class Maintain:
    """How files and snapshots are to be kept small: bytes and seconds. Nothing does so in this version."""

    compact_to: int
    compact_every: int
    keep_snapshots_for: int
    keep_at_least: int
    orphans_after: int
