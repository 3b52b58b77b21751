"""Tables, and how rows are written to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

from framework.base.errors import Where
from framework.plan.catalog import Catalog
from framework.plan.column_sql import ColumnSql
from framework.plan.side_table import BAD_ROW_COLUMNS, SideTable
from framework.plan.topic import Column
from framework.plan.totals import MEASURES, Totals
from framework.plan.write import Write

IS_CURRENT = "is_current"
VERSION = {
    "valid_from": "Since when the row was so",
    "valid_to": "Until when it was so: then another version of its key came, or its end; null of a current one",
    IS_CURRENT: "Whether it is the newest version of its key, and not deleted",
}  # columns of a table that keeps all versions


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
    newer one has the greater `order`, compared column by column; null is the oldest. With `partition`, Kafka's time in it is first made
    to rise (`framework/core/staging/rising.py`), so that a later offset of a partition is newer even if Kafka's clock stepped back."""

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
    partition: tuple[str, ...] = ()  # columns that name a message's partition, where its offset decides before Kafka's time

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
    write: Write
    partition_by: tuple[PartitionField, ...]
    sort_by: tuple[str, ...]
    format_version: int
    doc: str = ""
    masked: tuple[tuple[str, ...], ...] = ()  # paths of columns and fields of which there are no statistics
    keyed: Keyed | None = None
    accumulated: Totals | None = None
    step_states: tuple[State, ...] = ()  # of steps that remember rows
    adopt: bool = field(default=False, repr=False)  # whether a table that already exists is taken over
    schema_changes: SchemaChanges = field(default=SchemaChanges(), repr=False)  # does not decide which rows are written
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)  # of the options of `into`

    @property
    def write_name(self) -> str:
        return self.write.name

    @property
    def identifier(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row, if any do."""
        key_rule = self.keyed or self.accumulated
        return key_rule.keys if key_rule else ()

    @property
    def rows_change(self) -> bool:
        """Whether a batch changes rows that the table already has."""
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
        key_rule = self.keyed or self.accumulated
        return "; ".join((*((key_rule.words,) if key_rule else ()), *(state.says for state in self.step_states)))

    @property
    def side_tables(self) -> tuple[SideTable, ...]:
        return (self.bad_rows_table,)

    @property
    def bad_rows_table(self) -> SideTable:
        return SideTable(self.bad_rows, BAD_ROW_COLUMNS)

    @property
    def bad_rows(self) -> str:
        return f"{self.identifier}__bad_rows"

    @property
    def second(self) -> Table:
        """The table that a rebuild fills next to this one."""
        return replace(self, name=f"{self.name}__rebuild")
